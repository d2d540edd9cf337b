"""Commits of a vault as a person wants to know them: who, when, in which turn."""

import secrets
from typing import NamedTuple

from gametape.desk.vault.repository import Repository

_TRAILERS = "%(trailers:key=Gametape-Thread,valueonly)%x00%(trailers:key=Gametape-Turn,valueonly)"
_FORM = f"%H%x00%at%x00%an%x00%s%x00{_TRAILERS}%x00"


class Commit(NamedTuple):
    id: str
    time: int
    who: str
    """The thread that wrote it, or the person."""
    turn: int | None
    subject: str
    paths: tuple[str, ...]

    @property
    def short(self) -> str:
        return self.id[:10]

    @property
    def told(self) -> str:
        """Who it was, in words."""
        return self.who if self.turn is None else f"{self.who}, turn {self.turn}"


def commits(repository: Repository, *span: str) -> list[Commit]:
    """The commits of a span, the newest first, each with the paths it changed; a merge changes none of its own."""
    mark = secrets.token_hex(16)  # that no commit of another machine can have in its subject
    said = repository.git("log", f"--format={mark}{_FORM}", "-z", "--name-only", "--no-renames", *span)
    return [_commit(part) for part in said.decode("utf-8", "surrogateescape").split(mark) if part]


def _commit(text: str) -> Commit:
    name, time, author, subject, thread, turn, *paths = text.split("\0")
    thread, turn = thread.strip(), turn.strip()
    return Commit(
        id=name,
        time=int(time),
        who=thread or author,
        turn=int(turn) if turn.isdecimal() else None,
        subject=subject,
        paths=tuple(path for path in (path.strip("\n") for path in paths) if path),
    )
