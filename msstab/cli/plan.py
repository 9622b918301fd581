"""`msstab plan`: what a build would run, and for how long."""

from msstab.cli import shared


def plan(
    profile: shared.Profile = "full",
    parameter: shared.Parameters = None,
    params: shared.ParameterFile = None,
    jobs: shared.Jobs = None,
    reuse: shared.Reuse = None,
    as_json: shared.AsJson = False,
) -> None:
    """Say what a build would train and score, what is kept, and how long it would take.

    Nothing is trained. Exit codes: 0 planned, 2 a parameter or an option is wrong.
    """
    study = shared.asked_study(profile, parameter, params)
    from msstab import book, outlook, terminal

    with shared.explained():
        root = book.find_root()
        chapters = [path.stem for path in book.find_chapters(root, book.read_toc(root))]
    with shared.reusing(reuse):
        found = outlook.outlook(study, chapters, jobs=jobs or shared.cores())
    if as_json:
        shared.print_json({"study_key": study.key, **outlook.to_json(found)})
        return
    headings = ("Stage", "Kept", "To train", "To score", "Later, about", "Time")
    terminal.print_table(headings, outlook.to_texts(found), numbers=range(1, 6))
    for line in outlook.notes(found):
        print(line)
