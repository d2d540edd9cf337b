from notes.note import Note


def test_the_title_is_the_first_line():
    assert Note(1, "Milk\nand bread").title == "Milk"


def test_notes_are_values():
    assert Note(1, "Milk") == Note(1, "Milk")
