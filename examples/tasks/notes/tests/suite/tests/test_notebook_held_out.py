import pytest

from notes.note import Note
from notes.notebook import Notebook
from notes.store import Store


@pytest.fixture
def notebook(tmp_path):
    return Notebook(Store(tmp_path / "notes.jsonl"))


def test_the_day_of_a_notebook(notebook):
    notebook.add("Water plants", ["Garden", "weekly"])
    notebook.add("Paint fence", ["garden"])
    notebook.add("File taxes")
    notebook.remove(2)
    assert notebook.add("Mow lawn", ["GARDEN"]) == Note(4, "Mow lawn", frozenset({"garden"}))
    assert [note.id for note in notebook.find("#garden")] == [1, 4]
    assert notebook.tags() == {"garden": 2, "weekly": 1}


def test_a_note_needs_a_text(notebook):
    with pytest.raises(ValueError):
        notebook.add(" \n ")
    assert notebook.find() == []


def test_another_notebook_goes_on_counting(tmp_path):
    first = Notebook(Store(tmp_path / "notes.jsonl"))
    first.add("one")
    first.add("two")
    second = Notebook(Store(tmp_path / "notes.jsonl"))
    assert second.add("three").id == 3
    second.remove(3)
    assert second.add("four").id == 3
