"""A vault: notes that agents write and people read. Every write is a commit that names its thread and turn.

Nothing that was written is lost. A write whose key is in the history is not repeated. A write whose author has not seen
the newest version of the note is merged with it; where that fails, it is stored beside it under another name.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from gametape.core.errors import BadInput
from gametape.desk.vault.merge import conflict_path, merge_texts
from gametape.desk.vault.note_files import (
    FOLDERS,
    MAX_CHARACTERS,
    MAX_NOTES,
    clean_name,
    note_name,
    note_path,
    read_note,
    read_notes,
)
from gametape.desk.vault.read_log import READ_LOG, ReadLog
from gametape.desk.vault.repository import GitTreeEntry, VaultRepository, create_repository, open_repository

NoteWriteOutcome = Literal["kept", "merged", "aside"]
_MAX_MERGED_BYTES = 8 * MAX_CHARACTERS
"""A limit for merged notes, so that they do not grow for ever."""
_KEY = re.compile(r"[\w./:@+-]{1,300}", re.ASCII)
_SUBJECTS: dict[NoteWriteOutcome, str] = {
    "kept": "remembered",
    "merged": "merged with what others wrote",
    "aside": "kept beside what others wrote",
}
_OUTCOMES: dict[str, NoteWriteOutcome] = {how: how for how in _SUBJECTS}
_README = """\
# Vault

What agents thought worth remembering, one note a file: people/ holds whom we work with, projects/ what we work on,
agent/ what agents keep for themselves. Edit it as you like. `gametape vault review` shows what is new.
"""


class NoteWriter(NamedTuple):
    """The attempt and turn that write, and the key by which the same write is never made twice."""

    attempt: str
    turn: int
    key: str


class NoteWriteResult(NamedTuple):
    """What became of a write: stored as given, merged with another version, or stored under another name."""

    note: str
    how: NoteWriteOutcome


@dataclass(frozen=True)
class Vault:
    repository: VaultRepository

    @classmethod
    def init(cls, root: Path) -> "Vault":
        """The vault in this directory; it is created if there is none, and existing markdown becomes notes."""
        repository = create_repository(root, {"README.md": _README.encode()}, "A vault\n")
        for folder in FOLDERS:
            (repository.root / folder).mkdir(exist_ok=True)
        return cls(repository)

    @classmethod
    def open(cls, root: Path) -> "Vault":
        return cls(open_repository(root))

    @property
    def root(self) -> Path:
        return self.repository.root

    @property
    def reads(self) -> ReadLog:
        return ReadLog(self.root / READ_LOG)

    def names(self) -> list[str]:
        return sorted(note for path in read_notes(self.root) if (note := note_name(path)))

    def resolve_name(self, name: str) -> str:
        """The note with exactly this name if it exists, else the cleaned name."""
        exact = name.removesuffix(".md")
        return exact if read_note(self.root, exact) is not None else clean_name(name)

    def read(self, name: str) -> str | None:
        """The text of a note on disk, including a person's edits."""
        content = read_note(self.root, self.resolve_name(name))
        return None if content is None else content.decode("utf-8", "replace")

    def read_by(self, name: str, attempt: str, turn: int) -> str | None:
        """The same for an agent: the read is logged, for its next write and for the usage statistics."""
        note = self.resolve_name(name)
        content = read_note(self.root, note)
        if content is None:
            return None
        self.reads.record_read(attempt, turn, note, self.repository.store_blob(content).id)
        return content.decode("utf-8", "replace")

    def write(self, name: str, text: str, writer: NoteWriter) -> NoteWriteResult:
        """Write a note. When this returns, it is committed."""
        if not _KEY.fullmatch(writer.key):
            raise BadInput(f"{writer.key[:80]!r} is not a key for a write; use letters, digits and ./:@+-")
        content = _content(text)
        note = self.resolve_name(name)
        with self.repository.locked():
            result = self._find_write(writer.key) or self._write(note, content, writer)
            known = self.repository.store_blob(content).id
            self.reads.record_read(writer.attempt, writer.turn, note, known, wrote=True)
            if result.note != note:
                self.reads.record_read(writer.attempt, writer.turn, result.note, known, wrote=True)
        return result

    def _write(self, note: str, content: bytes, writer: NoteWriter) -> NoteWriteResult:
        repository = self.repository
        path = note_path(note)
        files = repository.files(repository.head)
        now = repository.content(files.get(path))
        base = b""
        seen = self.reads.last_seen(writer.attempt, note)
        if seen and repository.has(seen):
            base = repository.content(GitTreeEntry("100644", seen))
        merged = content if path not in files else merge_texts(repository.git, base, now, content)
        if merged is not None and len(merged) > _MAX_MERGED_BYTES:
            merged = None
        how: NoteWriteOutcome = "kept" if merged == content else "merged"
        entry = repository.store_blob(content if merged is None else merged)
        if merged is None:
            how, path = "aside", conflict_path(path, _plain(writer.attempt), entry, files)
        if path not in files and sum(note_name(path) is not None for path in files) >= MAX_NOTES:
            raise BadInput(f"there are {MAX_NOTES} notes already, the most there can be; write over one of them")
        result = NoteWriteResult(path.removesuffix(".md"), how)
        if path not in files or files[path].id != entry.id:
            repository.commit({path: entry}, _message(result, writer))
        return result

    def _find_write(self, key: str) -> NoteWriteResult | None:
        """The result of the write with this key, if it was made."""
        line = f"Gametape-Key: {key}"
        log = self.repository.git("log", "--format=%x01%B", "--fixed-strings", f"--grep={line}", "HEAD")
        for message in log.split(b"\x01"):
            lines = message.decode("utf-8", "replace").splitlines()
            trailers = {name: value for name, _, value in (text.partition(": ") for text in lines)}
            if line in lines and trailers.get("Gametape-How") in _OUTCOMES and "Gametape-Note" in trailers:
                return NoteWriteResult(trailers["Gametape-Note"], _OUTCOMES[trailers["Gametape-How"]])
        return None


def _content(text: str) -> bytes:
    """A note in its stored form: UTF-8, with a line feed after every line."""
    if not text.strip():
        raise BadInput("a note cannot be emptied; write in it what holds now")
    if len(text) > MAX_CHARACTERS:
        raise BadInput(f"a note holds {MAX_CHARACTERS:,} characters at most, not {len(text):,}; keep what matters")
    plain = text.replace("\r\n", "\n").replace("\0", "")
    return (plain if plain.endswith("\n") else plain + "\n").encode("utf-8", "replace")


def _message(result: NoteWriteResult, writer: NoteWriter) -> str:
    return (
        f"{result.note}: {_SUBJECTS[result.how]}\n\n"
        f"Gametape-Thread: {writer.attempt}\nGametape-Turn: {writer.turn}\nGametape-Note: {result.note}\n"
        f"Gametape-How: {result.how}\nGametape-Key: {writer.key}\n"
    )


def _plain(attempt: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", attempt.lower()).strip("-") or "other"
