"""What a record comes to, kept up step by step: its usage, where its context began, its messages and its progress.

With a digest a rollout is resumed, and a thread is listed, without reading its earlier steps. It is stored beside the
journal from time to time. A stored one that is lost or does not fit costs one reading of the whole journal.
"""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from zlib import crc32

from pydantic import TypeAdapter, ValidationError

from gametape.agent.limits import RolloutUsage
from gametape.agent.progress_log import ProgressLog
from gametape.agent.recorded_steps import add_usage, is_answer, message_key
from gametape.core.step import Step
from gametape.record.atomic import write_atomically
from gametape.record.journal_steps import JournalSteps

_VERSION = 1


@dataclass
class LastMessage:
    """The last message of a person: its key, its place in the record (from 0), and what was used before it."""

    key: str
    index: int
    before: RolloutUsage


@dataclass
class RecordDigest:
    """The digest of the first `steps` steps of a record."""

    steps: int = 0
    usage: RolloutUsage = field(default_factory=RolloutUsage)
    progress: ProgressLog = field(default_factory=ProgressLog)
    rewound: bool = False
    """Whether a step goes back to an earlier one. Such a record has to be read whole to know its active steps."""
    context: int | None = None
    """The place of the step (from 0) with which the current context began."""
    context_turns: int = 0
    """The turns of the model before that."""
    replayed: int = 0
    escalated: bool = False
    context_escalated: bool = False
    """Whether a stronger model had taken over before that."""
    message: LastMessage | None = None
    messages: int = 0
    answers: int = 0
    last: str | None = None
    """The time of the last step."""

    @classmethod
    def of(cls, steps: Iterable[Step]) -> Self:
        digest = cls()
        for step in steps:
            digest.add(step)
        return digest

    def add(self, step: Step) -> None:
        key = message_key(step)
        if key is not None:
            self.messages += 1
            self.message = LastMessage(key, self.steps, self.used())
        self.answers += is_answer(step)
        self.last = step.timestamp or self.last
        self.rewound |= step.gametape_extra.rolled_back_to is not None
        if not step.gametape_extra.summary:
            self._add_to_context(step)
        self.progress.add(step)
        add_usage(self.usage, step)
        self.steps += 1

    def used(self) -> RolloutUsage:
        """The usage so far, for a rollout that goes on from here."""
        return replace(self.usage, calls=self.usage.calls.copy(), began=time.monotonic())

    def _add_to_context(self, step: Step) -> None:
        if step.source == "agent":
            self.replayed += 1
        elif step.source == "user" and (self.context is None or step.gametape_extra.compacted):
            self.context, self.context_turns, self.context_escalated = self.steps, self.replayed, self.escalated
        self.escalated |= any(event.get("kind") == "escalation" for event in step.gametape_extra.events or ())


_DIGEST: TypeAdapter[RecordDigest] = TypeAdapter(RecordDigest)


@dataclass(frozen=True)
class DigestFile:
    """The stored digest of one record."""

    path: Path

    def load(self, steps: JournalSteps) -> RecordDigest:
        """The digest of all steps, of which only those are read that were recorded after it was stored."""
        digest = self._stored(steps) or RecordDigest()
        for index in range(digest.steps, len(steps)):
            digest.add(steps.brief(index))
        return digest

    def load_finished(self, file: Path) -> RecordDigest | None:
        """The digest that was stored with a finished record; None where there is none of this very file."""
        stored = self._read()
        return _digest(stored) if stored.get("finished") == file.stat().st_size else None

    def save(self, digest: RecordDigest, steps: JournalSteps) -> None:
        self._write(digest, {"bytes": steps.end_of(digest.steps), "last_line": crc32(steps.line(digest.steps - 1))})

    def save_finished(self, digest: RecordDigest, file: Path) -> None:
        self._write(digest, {"finished": file.stat().st_size})

    def _stored(self, steps: JournalSteps) -> RecordDigest | None:
        """The stored digest, if it is one of the first steps of this very journal."""
        stored = self._read()
        digest = _digest(stored)
        if digest is None or not 0 < digest.steps <= len(steps):
            return None
        end, line = steps.end_of(digest.steps), steps.line(digest.steps - 1)
        return digest if (stored.get("bytes"), stored.get("last_line")) == (end, crc32(line)) else None

    def _read(self) -> dict[str, Any]:
        try:
            stored = json.loads(self.path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return stored if isinstance(stored, dict) and stored.get("version") == _VERSION else {}

    def _write(self, digest: RecordDigest, fits: dict[str, int]) -> None:
        document = {"version": _VERSION, **fits, "digest": _DIGEST.dump_python(digest, mode="json")}
        write_atomically(self.path, json.dumps(document).encode())


def _digest(stored: dict[str, Any]) -> RecordDigest | None:
    try:
        digest = _DIGEST.validate_python(stored.get("digest"))
    except ValidationError:
        return None
    digest.usage = digest.used()
    return digest
