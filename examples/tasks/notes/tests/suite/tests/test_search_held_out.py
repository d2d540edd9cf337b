from notes.note import Note
from notes.search import matches

NOTE = Note(4, "Call the Plumber\nbefore Friday", frozenset({"house", "urgent"}))


def test_case_does_not_matter():
    assert matches(NOTE, "PLUMBER #URGENT") is True


def test_parts_of_words_and_later_lines_count():
    assert matches(NOTE, "plumb fri") is True
    assert matches(NOTE, "plumb -fri") is False


def test_the_empty_query():
    assert matches(NOTE, "  ") is True


def test_a_tag_is_not_text():
    assert matches(NOTE, "urgent") is False
    assert matches(NOTE, "-#work house") is False
