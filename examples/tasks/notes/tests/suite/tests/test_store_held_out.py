import pytest

from notes.note import Note
from notes.store import Store


def test_saving_replaces(tmp_path):
    store = Store(tmp_path / "notes.jsonl")
    store.save([Note(1, "a"), Note(2, "b"), Note(3, "c")])
    store.save([Note(3, "c")])
    assert store.load() == [Note(3, "c")]


def test_empty_lines_are_skipped_but_counted(tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text('\n{"id": 5, "text": "five", "tags": ["t"]}\n\n')
    assert Store(path).load() == [Note(5, "five", frozenset({"t"}))]
    path.write_text('\n{"id": 5, "text": "five", "tags": ["t"]}\n\n{"id": 6}\n')
    with pytest.raises(ValueError, match="4"):
        Store(path).load()
