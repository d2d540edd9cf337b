"""One thing said to a thread: the words go on record once, and the agent works until it answers.

Everything can be killed at any instant. The words are known by their key, the last reply of the model is kept before it
is acted upon, and the files are those after the last finished turn. Said again under the same key, it goes on there.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gametape.agent.breaking import Tripped
from gametape.agent.checkpoints import saved_at
from gametape.agent.limits import Over
from gametape.agent.recording import OnDisk, said_step
from gametape.agent.replay import line_of
from gametape.agent.rollout import Rollout, Setting
from gametape.agent.tools.history import has_history
from gametape.core.messages import Sampling
from gametape.desk.outbox import Outbox
from gametape.desk.threads.answers import Answered, Ended, answered, key_of, on_record
from gametape.desk.threads.beginning import CHECKPOINT_BYTES
from gametape.desk.threads.bounds import check_open, limits_of
from gametape.desk.threads.replies import KeptConversation, ReplySlot
from gametape.desk.threads.surroundings import open_model, perimeter_of, tidy, tools_of
from gametape.desk.threads.thread import Thread, ThreadPlace
from gametape.desk.turns import Ask, turns
from gametape.engines.conversation import Model
from gametape.record.journal import Journal
from gametape.sandbox.backend import Spec
from gametape.sandbox.live import Floor
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.watch.breaker import Breaker
from gametape.watch.watching import Watch

_ENDED: dict[str | None, Ended] = {None: "answered", "limit": "limit", "cancelled": "cancelled"}


@dataclass(frozen=True)
class Said:
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
class Speaking:
    """A thread that is spoken to, and what it reaches outside its sandbox."""

    home: Path
    place: ThreadPlace
    outbox: Outbox

    async def speak(self, said: Said, cancelled: Ask) -> Answered:
        """Say something and let the agent work until it answers or may not go on. `cancelled` is asked every turn.

        Raises `Refused` where nothing may be said to the thread, and `GametapeError` where it cannot be opened.
        """
        thread = self.place.read()
        record = self.place.recorded()
        if (known := on_record(record.steps, said.key)) is not None:
            return self._ended(known) if known.step == record.steps[-1].step_id else known
        if not any(key_of(step) == said.key for step in record.steps):
            check_open(thread, record.steps, said.anyway)
        model = open_model(self.home, thread, record, perimeter_of(thread, record))
        try:
            with Journal.open(self.place.journal) as journal:
                recorder = OnDisk(journal)
                await _put_on_record(recorder, said)
                over = await self._work(thread, said, recorder, model, cancelled)
        finally:
            await model.close()
        ended: Ended = "paused" if isinstance(over, Tripped) else _ENDED.get(over.outcome, "error")
        return self._ended(answered(recorder.steps, ended, "answered" if ended == "answered" else over.reason))

    def _ended(self, end: Answered) -> Answered:
        """A thread that was paused before stays so only if it was stopped again."""
        paused = end.reason if end.ended == "paused" else None
        if self.place.read().paused != paused:
            self.place.change(paused=paused)
        return end

    async def _work(self, thread: Thread, said: Said, recorder: OnDisk, model: Model, cancelled: Ask) -> Over:
        store_at = self.place.store_of(thread)
        with SnapshotStore(store_at, max_bytes=CHECKPOINT_BYTES) as store:
            async with Floor(store=store) as floor:
                environment = await floor.open_snapshot(saved_at(line_of(recorder.steps))[0], Spec())
                history = await has_history(environment)
                setting = self._setting(thread, said, recorder, model, store, history)
                rollout = await Rollout.resume(setting, environment, recorder)
                return await turns(rollout, cancelled)

    def _setting(
        self, thread: Thread, said: Said, recorder: OnDisk, model: Model, store: SnapshotStore, history: bool
    ) -> Setting:
        limits = limits_of(thread, recorder.steps, said.key, said.budget_tokens, said.budget_usd)
        slot = ReplySlot(self.place.reply, lambda: len(recorder.steps))
        return Setting(
            toolmaker=lambda work: tools_of(thread, work, self.home, self.outbox, history, limits.tool_seconds),
            converse=lambda: KeptConversation(model.converse(Sampling(), thread.thread_id), slot),
            window=model.window,
            limits=limits,
            constraints=thread.constraints,
            changed=store.diff,
            tidy=lambda kept: tidy(self.home, thread, store, kept),
            conversing=True,
            breaker=lambda: Breaker(Watch()),
        )


async def _put_on_record(recorder: OnDisk, said: Said) -> None:
    """Once, with the files and the work in hand as they were before: a thread can be gone back to here."""
    if any(key_of(step) == said.key for step in recorder.steps):
        return
    checkpoint, work = saved_at(line_of(recorder.steps))
    ours: dict[str, Any] = {"key": said.key, "origin": said.origin, "checkpoint": checkpoint, "work": work.data}
    await recorder.append(said_step(len(recorder.steps) + 1, "user", said.text, **ours))
