"""The outbox: agents draft messages, and a person approves or rejects each before it is sent."""

import json
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import sqlalchemy as sa

from gametape.core.errors import BadInput, GametapeError
from gametape.desk.database import drafts, insert_once
from gametape.desk.delivery import DeliveryChannel
from gametape.record.atomic import write_atomically

DraftState = Literal["draft", "approved", "sent", "rejected"]
_CHARACTERS = 100_000


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

    async def approve(self, name: str) -> OutboxDraft:
        """Send a draft. The decision is stored first; approving one that could not be sent sends it again, with the
        same key. Raises `DeliveryError`, and `AlreadyDecided` where it was rejected."""
        draft = self._decide(name, "approved", {"draft", "approved"})
        if draft.state == "sent":
            return draft
        payload = {"to": draft.recipient, "subject": draft.subject, "body": draft.body, "origin": draft.origin}
        if self._channel:
            await self._channel.deliver(draft.key, payload)
        else:
            self._released.mkdir(parents=True, exist_ok=True)
            document = json.dumps({**payload, "key": draft.key}, indent=1, ensure_ascii=False)
            write_atomically(self._file_of(draft), document.encode())
        return self._decide(name, "sent", {"approved"})

    def delivery_of(self, draft: OutboxDraft) -> str:
        """What became of a draft that was approved: `written to FILE`, or what the channel does."""
        file = self._file_of(draft)
        return f"written to {file}" if file.exists() else str(self._channel) or "sent"

    def _file_of(self, draft: OutboxDraft) -> Path:
        return self._released / f"{draft.id}.json"

    def reject(self, name: str, note: str = "") -> OutboxDraft:
        """Raises `AlreadyDecided` where it was sent or approved before."""
        return self._decide(name, "rejected", {"draft", "rejected"}, note)

    def _decide(self, name: str, state: DraftState, before: set[str], note: str = "") -> OutboxDraft:
        now = self.get(name)
        change = sa.update(drafts).where(drafts.c.id == name, drafts.c.state.in_(before))
        with self._database.begin() as connection:
            changed = connection.execute(
                change.values(state=state, decided=time.time(), note=note or now.note)
            ).rowcount
        draft = self.get(name)
        if not changed and not (state == "approved" and draft.state == "sent"):
            raise AlreadyDecided(f"{name}: is {draft.state} already")
        return draft
