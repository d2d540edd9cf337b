"""The outbox: agents draft messages, and a person approves or rejects each before it is sent.

A draft is sent by whoever holds its lock, which the kernel releases when its holder is killed. Before a message leaves,
its draft is stored as `sending`. One that is found so while nobody holds its lock was cut off: it may have left or not,
and only a person can decide whether it is sent again.
"""

import asyncio
import json
import os
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import sqlalchemy as sa

from gametape.core.errors import BadInput, GametapeError
from gametape.desk.database import drafts, insert_once
from gametape.desk.delivery import DeliveryChannel, DeliveryError
from gametape.record.atomic import write_atomically
from gametape.record.errors import write_error
from gametape.record.lock import try_lock

DraftState = Literal["draft", "approved", "sending", "sent", "rejected"]
_CHARACTERS = 100_000
_SECONDS_BETWEEN_TRIES = 0.05


class AlreadyDecided(GametapeError):
    """The draft was decided otherwise before."""

    exit_code = 1


@dataclass(frozen=True)
class OutboxDraft:
    id: str
    key: str
    origin: str
    recipient: str
    subject: str
    body: str
    state: DraftState
    drafted: float
    decided: float | None
    note: str


class Outbox:
    def __init__(self, database: sa.Engine, channel: DeliveryChannel, released: Path) -> None:
        """Where no channel is set, approved drafts are written to the directory `released`, one file each."""
        self._database, self._channel, self._released = database, channel, released

    def draft(self, key: str, origin: str, recipient: str, subject: str, body: str) -> str:
        """Store a draft for a person to decide on, and return its id. The same key again is the same draft."""
        if len(recipient) + len(subject) + len(body) > _CHARACTERS:
            raise BadInput(f"a draft is at most {_CHARACTERS} characters long")
        now = time.time()
        draft_id = f"draft-{time.strftime('%Y%m%d', time.gmtime(now))}-{secrets.token_hex(3)}"
        text = {"recipient": recipient, "subject": subject, "body": body}
        with self._database.begin() as connection:
            row = {"id": draft_id, "key": key, "origin": origin, **text, "state": "draft", "drafted": now, "note": ""}
            insert_once(connection, drafts, row)
            return str(connection.scalar(sa.select(drafts.c.id).where(drafts.c.key == key)))

    def list(self, state: DraftState | None = None) -> list[OutboxDraft]:
        query = sa.select(drafts).order_by(drafts.c.drafted)
        if state is not None:
            query = query.where(drafts.c.state == state)
        with self._database.connect() as connection:
            return [OutboxDraft(**row) for row in connection.execute(query).mappings()]

    def get(self, name: str) -> OutboxDraft:
        with self._database.connect() as connection:
            row = connection.execute(sa.select(drafts).where(drafts.c.id == name)).mappings().first()
        if row is None:
            raise BadInput(f"{name}: no such draft")
        return OutboxDraft(**row)

    async def approve(self, name: str, again: bool = False) -> OutboxDraft:
        """Send a draft, once however many processes approve it at the same time: the others wait for the first. The
        decision is stored first; approving one that the receiver did not accept sends it again, with the same key.
        Raises `DeliveryError`, and `AlreadyDecided` where it was rejected, or where an earlier sender was cut off and
        `again` does not say to send it nevertheless."""
        self.get(name)
        async with self._lock(name):
            draft = self.get(name)
            if draft.state == "sending" and not again:
                raise AlreadyDecided(
                    f"{name}: was cut off while it was sent, and may have arrived or not: "
                    "outbox approve --again sends it again, outbox reject leaves it"
                )
            if draft.state != "sent":
                draft = await self._send(self._decide(name, "approved", {"draft", "approved", "sending"}))
        return draft

    async def _send(self, draft: OutboxDraft) -> OutboxDraft:
        payload = {"to": draft.recipient, "subject": draft.subject, "body": draft.body, "origin": draft.origin}
        if self._channel:
            self._decide(draft.id, "sending", {"approved"})
            try:
                await self._channel.deliver(draft.key, payload)
            except DeliveryError:
                self._decide(draft.id, "approved", {"sending"})
                raise
        else:
            document = json.dumps({**payload, "key": draft.key}, indent=1, ensure_ascii=False)
            write_atomically(self._file_of(draft), document.encode("utf-8", "replace"))
        return self._decide(draft.id, "sent", {"approved", "sending"})

    @asynccontextmanager
    async def _lock(self, name: str) -> AsyncIterator[None]:
        """Wait for the lock of a draft, and hold it. Its holder deletes the file; who then gets the lock of a deleted
        file tries again."""
        path = self._released / f".{name}.lock"
        while (fd := self._try_lock(path)) is None:
            await asyncio.sleep(_SECONDS_BETWEEN_TRIES)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            os.close(fd)

    def _try_lock(self, path: Path) -> int | None:
        try:
            self._released.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise write_error(path, error) from None
        if try_lock(fd) and os.fstat(fd).st_nlink:
            return fd
        os.close(fd)
        return None

    def delivery_of(self, draft: OutboxDraft) -> str:
        """What became of a draft that was approved: `written to FILE`, or what the channel does."""
        file = self._file_of(draft)
        return f"written to {file}" if file.exists() else str(self._channel) or "sent"

    def _file_of(self, draft: OutboxDraft) -> Path:
        return self._released / f"{draft.id}.json"

    async def reject(self, name: str, note: str = "") -> OutboxDraft:
        """Raises `AlreadyDecided` where it was sent or approved. One whose sender was cut off may be rejected."""
        self.get(name)
        async with self._lock(name):
            return self._decide(name, "rejected", {"draft", "sending", "rejected"}, note)

    def _decide(self, name: str, state: DraftState, before: set[str], note: str = "") -> OutboxDraft:
        now = self.get(name)
        change = sa.update(drafts).where(drafts.c.id == name, drafts.c.state.in_(before))
        values = {"state": state, "decided": time.time(), "note": note or now.note}
        with self._database.begin() as connection:
            changed = connection.execute(change.values(**values)).rowcount
        draft = self.get(name)
        if not changed:
            raise AlreadyDecided(f"{name}: is {draft.state} already")
        return draft
