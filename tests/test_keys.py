import pytest

from msstab import keys

ROOMS = ("seeding",)


def test_a_name_says_apart_what_was_asked_and_what_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    name = keys.key([1, "a"], ROOMS)
    assert keys.key([1, "a"], ROOMS) == name
    assert keys.question(keys.key([2, "a"], ROOMS)) != keys.question(name)
    other_code = keys.key([1, "a"], ("seeding", "keys"))
    assert other_code != name
    assert keys.question(other_code) == keys.question(name)
    monkeypatch.setattr(keys, "_versions", lambda: ("another torch",))
    other_version = keys.key([1, "a"], ROOMS)
    assert other_version != name
    assert keys.question(other_version) == keys.question(name)


def test_a_name_depends_on_what_the_result_is_made_from() -> None:
    first, second = keys.key([1], ROOMS), keys.key([2], ROOMS)
    remade = keys.key([1], ("seeding", "keys"))
    name = keys.key("score", ROOMS, of=(first, second))
    assert keys.question(keys.key("score", ROOMS, of=(second, first))) != keys.question(name)
    assert keys.key("score", ROOMS, of=(remade, second)) != name
    assert keys.question(keys.key("score", ROOMS, of=(remade, second))) == keys.question(name)
