from notes.note import Note
from notes.search import matches

NOTE = Note(1, "Buy milk and Bread", frozenset({"shopping", "home"}))


def test_every_word_must_occur():
    assert matches(NOTE, "milk bread") is True
    assert matches(NOTE, "milk butter") is False


def test_tags():
    assert matches(NOTE, "#home") is True
    assert matches(NOTE, "#ho") is False


def test_the_opposite():
    assert matches(NOTE, "milk -butter") is True
    assert matches(NOTE, "-#shopping") is False
