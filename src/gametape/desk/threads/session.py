"""What a model said is kept before anything is done about it: a turn that a kill cut off is run again, not asked again.

So it is paid for once, its calls are the same, and what they do outside the workspace has the same keys.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from gametape.agent.breaker import BreakerTripped
from gametape.agent.limits import RolloutEnd
from gametape.agent.recorder import JournalRecorder, message_step
from gametape.agent.replay import active_steps, checkpoint_at
from gametape.agent.rollout import Rollout, RolloutConfig
from gametape.agent.session import open_workspace
from gametape.agent.tools.history import has_history
from gametape.desk.agent_turns import CancelCheck, run_turns
from gametape.desk.outbox import Outbox
from gametape.desk.threads.agent_setup import (
    check_open,
    drop_old_checkpoints,
    limits_of,
    open_model,
    perimeter_of,
    thread_tools,
)
from gametape.desk.threads.lifecycle import CHECKPOINT_BYTES
from gametape.desk.threads.thread import Thread, ThreadDirectory
from gametape.desk.threads.turn_result import (
    ThreadTurnResult,
    TurnEnd,
    find_turn_result,
    make_turn_result,
    message_key,
)
from gametape.engines.conversation import Conversation, ConversationWrapper, Model, Reply
from gametape.record.atomic import write_atomically
from gametape.record.journal import Journal
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.watch.breaker import BehaviourBreaker
from gametape.watch.monitor_set import MonitorSet

_REPLY: TypeAdapter[Reply] = TypeAdapter(Reply)


@dataclass(frozen=True)
class ThreadReplyCache:
    """Room for one reply: the one after so many recorded steps. The next takes its place."""

    file: Path
    position: Callable[[], int]

    def read(self) -> Reply | None:
        try:
            kept = json.loads(self.file.read_bytes())
        except FileNotFoundError:
            return None
        return _REPLY.validate_python(kept["reply"]) if kept["position"] == self.position() else None

    def write(self, reply: Reply) -> None:
        kept: dict[str, Any] = {"position": self.position(), "reply": _REPLY.dump_python(reply, mode="json")}
        write_atomically(self.file, json.dumps(kept).encode())


class ReplyCachedConversation(ConversationWrapper):
    """A conversation whose replies go through a slot."""

    def __init__(self, inner: Conversation, slot: ThreadReplyCache) -> None:
        super().__init__(inner)
        self._slot = slot

    @property
    def failures(self) -> Sequence[object]:
        """Questions that had to be asked again, where the conversation says so."""
        return getattr(self._inner, "failures", ())

    async def ask(self, max_tokens: int) -> Reply:
        kept = self._slot.read()
        if kept is not None:
            self._inner.replay(kept)
            return kept
        reply = await self._inner.ask(max_tokens)
        self._slot.write(reply)
        return reply


_ENDED: dict[str | None, TurnEnd] = {None: "answered", "limit": "limit", "cancelled": "cancelled"}


@dataclass(frozen=True)
class ThreadMessage:
    """Words, under the key by which they are said once."""

    text: str
    key: str
    origin: str = "person"
    budget_tokens: int | None = None
    """What this answer may take, beside the budget of the thread."""
    anyway: bool = False
    """Go on with a thread that is paused."""
    budget_usd: float | None = None


@dataclass(frozen=True)
class ThreadSession:
    """A thread that is spoken to, and what it reaches outside its sandbox."""

    home: Path
    directory: ThreadDirectory
    outbox: Outbox

    async def send(self, message: ThreadMessage, cancelled: CancelCheck) -> ThreadTurnResult:
        """Say something and let the agent work until it answers or may not go on. `cancelled` is asked every turn.

        Raises `Refused` where nothing may be said to the thread, and `GametapeError` where it cannot be opened.
        """
        thread = self.directory.read()
        record = self.directory.load_trajectory()
        if (known := find_turn_result(record.steps, message.key)) is not None:
            return self._ended(known) if known.step == record.steps[-1].step_id else known
        if not any(message_key(step) == message.key for step in record.steps):
            check_open(thread, record.steps, message.anyway)
        model = open_model(self.home, thread, record, perimeter_of(thread, record))
        try:
            with Journal.open(self.directory.journal) as journal:
                recorder = JournalRecorder(journal)
                await _put_on_record(recorder, message)
                over = await self._work(thread, message, recorder, model, cancelled)
        finally:
            await model.close()
        ended: TurnEnd = "paused" if isinstance(over, BreakerTripped) else _ENDED.get(over.outcome, "error")
        return self._ended(make_turn_result(recorder.steps, ended, "answered" if ended == "answered" else over.reason))

    def _ended(self, end: ThreadTurnResult) -> ThreadTurnResult:
        """A thread that was paused before stays so only if it was stopped again."""
        paused = end.reason if end.ended == "paused" else None
        if self.directory.read().paused != paused:
            self.directory.update(paused=paused)
        return end

    async def _work(
        self, thread: Thread, said: ThreadMessage, recorder: JournalRecorder, model: Model, cancelled: CancelCheck
    ) -> RolloutEnd:
        store_at = self.directory.store_of(thread)
        with SnapshotStore(store_at, max_bytes=CHECKPOINT_BYTES) as store:
            async with open_workspace(store, recorder, SandboxSpec()) as environment:
                history = await has_history(environment)
                setting = self._setting(thread, said, recorder, model, store, history)
                rollout = await Rollout.resume(setting, environment, recorder)
                return await run_turns(rollout, cancelled)

    def _setting(
        self,
        thread: Thread,
        said: ThreadMessage,
        recorder: JournalRecorder,
        model: Model,
        store: SnapshotStore,
        history: bool,
    ) -> RolloutConfig:
        limits = limits_of(thread, recorder.steps, said.key, said.budget_tokens, said.budget_usd)
        slot = ThreadReplyCache(self.directory.reply, lambda: len(recorder.steps))
        return RolloutConfig(
            model=model,
            make_tools=lambda work: thread_tools(thread, work, self.home, self.outbox, history, limits.tool_seconds),
            name=thread.thread_id,
            wrap_conversation=lambda conversation: ReplyCachedConversation(conversation, slot),
            limits=limits,
            constraints=thread.constraints,
            changed_paths=store.diff,
            prune_checkpoints=lambda kept: drop_old_checkpoints(self.home, thread, store, kept),
            reply_ends_run=True,
            make_breaker=lambda: BehaviourBreaker(MonitorSet()),
        )


async def _put_on_record(recorder: JournalRecorder, said: ThreadMessage) -> None:
    """Once, with the files and the work in hand as they were before: a thread can be gone back to here."""
    if any(message_key(step) == said.key for step in recorder.steps):
        return
    checkpoint, work = checkpoint_at(active_steps(recorder.steps))
    ours: dict[str, Any] = {"key": said.key, "origin": said.origin, "checkpoint": checkpoint, "work": work.data}
    await recorder.append(message_step(len(recorder.steps) + 1, "user", said.text, **ours))
