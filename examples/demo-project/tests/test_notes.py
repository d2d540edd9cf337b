import pytest
from scorebook.notes import Note, by_player, parse_note, tagged


def test_a_note_is_read() -> None:
    assert parse_note("47:10 @Kim: pass earlier #midfield") == Note(2830, "pass earlier", ("Kim",), ("midfield",))


def test_several_players_and_tags_keep_their_order() -> None:
    note = parse_note("12 @Kim @Ada close the gap #press #left")
    assert (note.players, note.tags) == (("Kim", "Ada"), ("press", "left"))


def test_a_note_without_players_is_for_all() -> None:
    assert parse_note("12 calm down").players == ()


def test_a_note_says_something() -> None:
    with pytest.raises(ValueError, match="says something"):
        parse_note("12 @Kim #press")


def test_players_are_told_in_the_order_of_the_clock() -> None:
    notes = [Note(600, "wait", ("Kim",)), Note(60, "run", ("Kim", "Ada"))]
    assert by_player(notes) == {"Kim": ["1:00 run", "10:00 wait"], "Ada": ["1:00 run"]}


def test_nobody_is_told_what_has_no_name() -> None:
    assert by_player([Note(60, "run")]) == {}


def test_tags_are_found_whatever_their_case() -> None:
    notes = [Note(1, "a", (), ("Press",)), Note(2, "b", (), ("left",)), Note(3, "c", (), ("press", "left"))]
    assert [note.text for note in tagged(notes, "press")] == ["a", "c"]


def test_an_unknown_tag_finds_nothing() -> None:
    assert tagged([Note(1, "a", (), ("press",))], "wing") == []
