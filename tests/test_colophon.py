from msstab import colophon

VALUES = {
    "study_key": "abc",
    "profile_line": "profile `quick` with `seeds = 9`",
    "seeds_line": "2 tune & 9 confirm",
    "networks_text": "1,234",
    "training_text": "5 min",
    "versions": "torch 2, numpy 3",
    "options": " --profile quick -p seeds=9",
}


def test_a_chapter_says_how_it_was_made() -> None:
    text = colophon.block("03_penalty", VALUES, "https://github.com/Ada/report/")
    for shown in (
        "<dd><code>abc</code></dd>",
        "profile <code>quick</code> with <code>seeds = 9</code>",
        '<a href="../index.html#all-parameters">',
        "2 tune &amp; 9 confirm",
        "1,234 networks took 5 min",
        "torch 2, numpy 3",
        "<code>msstab run 03_penalty --profile quick -p seeds=9</code>",
        'href="https://github.com/Ada/report/blob/main/notebooks/03_penalty.ipynb"',
        'href="https://github.com/Ada/report/issues/new?title=Chapter+03_penalty"',
    ):
        assert shown in text
    assert text.startswith('<details class="msstab-colophon"><summary>How')


def test_what_is_not_known_is_left_out() -> None:
    assert colophon.block("03_penalty", {"versions": "torch 2"}) == ""
    text = colophon.block("03_penalty", {"study_key": "<b>"})
    assert "&lt;b&gt;" in text
    for missing in ("Seeds", "Training", "Versions", "Again", "Sources"):
        assert missing not in text
