import asyncio
from pathlib import Path

import pytest

from gametape.agent.notes import MAX_NOTE_CHARACTERS, MAX_NOTES, DirectoryNoteStore, normalize_name
from gametape.core.errors import BadInput


def test_a_note_is_kept_replaced_and_removed(tmp_path: Path) -> None:
    async def talk() -> None:
        notes = DirectoryNoteStore(tmp_path / "notes")
        assert await notes.names() == []
        assert await notes.read("plan") is None
        await notes.write("plan", "one")
        await notes.write("Plan.md", "two ü")
        assert await notes.names() == ["plan"]
        assert await DirectoryNoteStore(tmp_path / "notes").read("plan") == "two ü"
        await notes.write("plan", "")
        assert await notes.names() == []

    asyncio.run(talk())


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a\0b", "x" * 500, ".hidden", "a/b", "nul\n"])
def test_no_name_leads_out_of_the_directory(tmp_path: Path, name: str) -> None:
    asyncio.run(DirectoryNoteStore(tmp_path / "notes").write(name, "text"))
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
    (file,) = (tmp_path / "notes").iterdir()
    assert file.name == f"{normalize_name(name)}.md"
    assert file.read_text() == "text"


@pytest.mark.parametrize("name", ["", "..", "///", "\0", "日本"])
def test_a_name_of_nothing_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="is no name for a note"):
        asyncio.run(DirectoryNoteStore(tmp_path).write(name, "text"))


def test_size_and_number_are_bounded(tmp_path: Path) -> None:
    async def talk() -> None:
        notes = DirectoryNoteStore(tmp_path)
        with pytest.raises(BadInput, match="at most"):
            await notes.write("long", "x" * (MAX_NOTE_CHARACTERS + 1))
        for number in range(MAX_NOTES):
            await notes.write(f"note {number}", "x")
        with pytest.raises(BadInput, match="write over one"):
            await notes.write("one more", "x")
        await notes.write("note 3", "changed")
        assert await notes.read("note-3") == "changed"
        assert len(list(tmp_path.iterdir())) == MAX_NOTES, "nothing half-written is left"

    asyncio.run(talk())


def test_half_a_character_is_no_crash(tmp_path: Path) -> None:
    asyncio.run(DirectoryNoteStore(tmp_path).write("odd", "a\ud800b"))
    assert asyncio.run(DirectoryNoteStore(tmp_path).read("odd")) == "a?b"
