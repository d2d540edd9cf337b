import pytest

from notes.notebook import Notebook
from notes.store import Store


@pytest.fixture
def notebook(tmp_path):
    return Notebook(Store(tmp_path / "notes.jsonl"))


def test_ids_count_up(notebook):
    assert [notebook.add("a").id, notebook.add("b").id] == [1, 2]


def test_find(notebook):
    notebook.add("Buy milk", ["Shop"])
    notebook.add("Sell car")
    assert [note.text for note in notebook.find("#shop")] == ["Buy milk"]


def test_changes_are_in_the_file(notebook):
    notebook.add("  Buy milk ")
    again = Notebook(Store(notebook.store.path))
    assert [note.text for note in again.find()] == ["Buy milk"]


def test_removing_what_is_not_there(notebook):
    with pytest.raises(KeyError):
        notebook.remove(7)
