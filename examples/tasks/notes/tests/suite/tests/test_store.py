import json

import pytest

from notes.note import Note
from notes.store import Store


def test_no_file_has_no_notes(tmp_path):
    assert Store(tmp_path / "none.jsonl").load() == []


def test_what_was_saved_is_loaded(tmp_path):
    notes = [Note(2, "two\nlines"), Note(1, "ünï", frozenset({"b", "a"}))]
    Store(tmp_path / "notes.jsonl").save(notes)
    assert Store(tmp_path / "notes.jsonl").load() == notes


def test_the_format(tmp_path):
    path = tmp_path / "notes.jsonl"
    Store(path).save([Note(1, "x", frozenset({"b", "a"}))])
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"id": 1, "text": "x", "tags": ["a", "b"]}]


def test_a_broken_line(tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"id": 1, "text": "x", "tags": []}\nnonsense\n')
    with pytest.raises(ValueError, match="2"):
        Store(path).load()
