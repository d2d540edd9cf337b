"""The agent's part of a goal: one conversation over all attempts, in one sandbox at a time, on disk after every turn.

Killed at any instant, an attempt is called again and goes on after its last finished turn. Between two attempts the
agent is told what failed, in the same conversation, while the files are those of the best state so far.
"""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gametape.agent.breaking import Tripped
from gametape.agent.checkpoints import last_checkpoint
from gametape.agent.context import opening_text, standing_instructions, system_text
from gametape.agent.limits import Limits, Over
from gametape.agent.notes import ScratchNotes
from gametape.agent.recording import OnDisk, final_metrics, new_record, said_step, spent_in
from gametape.agent.rollout import Rollout, Setting
from gametape.agent.work import Work
from gametape.agent.workshop import sandbox_of, tools_for
from gametape.core.atif import Extra
from gametape.core.messages import Sampling
from gametape.core.protocols import Tool
from gametape.core.step import Step
from gametape.core.trajectory import Trajectory
from gametape.desk.goals.goal import Goal, GoalPlace
from gametape.desk.turns import turns
from gametape.engines.conversation import Model
from gametape.record.journal import Journal
from gametape.sandbox.live import Floor
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.verify.subject import Subject
from gametape.watch.breaker import Breaker
from gametape.watch.watching import Watch

_CHECKPOINT_BYTES = 2 << 30
TURNS = 50
"""In one attempt."""
_LOOK = 0.5
_FACTS = (
    "You are done when this command succeeds: `{success}`. Existing tests and their configuration stay as they are."
)


@dataclass(frozen=True)
class Office:
    """What all attempts of one goal share."""

    place: GoalPlace
    goal: Goal
    subject: Subject
    model: Model
    home: Path

    async def attempt(self, cancelled: Callable[[], Awaitable[bool]], keep: Sequence[str]) -> dict[str, Any]:
        """Turn after turn until the agent says it has finished or something is used up: how it ended, the file tree it
        left and what it has cost in all. Of the checkpoints, those in `keep` stay."""
        with self._open() as (journal, store):
            recorder = OnDisk(journal)
            over = await self._run(recorder, store, cancelled, keep)
            spent = spent_in(recorder.steps)
            return {
                "checkpoint": last_checkpoint(recorder.steps),
                "outcome": over.outcome,
                "reason": over.reason,
                "tripped": isinstance(over, Tripped),
                "tokens": spent.tokens,
                "cost_usd": spent.cost_usd,
                "turns": spent.turns,
            }

    async def tell(self, number: int, text: str, checkpoint: str) -> None:
        """Say what came of an attempt; what follows is worked on the files of a checkpoint. Said once."""
        with self._open() as (journal, _):
            steps = journal.trajectory.steps
            if not any((step.ours.model_extra or {}).get("after_attempt") == number for step in steps):
                told = said_step(len(steps) + 1, "user", text, checkpoint=checkpoint, after_attempt=number)
                await OnDisk(journal).append(told)

    def first(self) -> str:
        """The checkpoint of the pinned workspace."""
        return next(filter(None, (step.ours.checkpoint for step in self.place.recorded().steps)))

    def export(self, checkpoint: str, target: Path) -> None:
        with SnapshotStore(self.place.checkpoints, max_bytes=_CHECKPOINT_BYTES) as store:
            store.export(checkpoint, target)

    def close(self, extra: Extra) -> Path:
        """End the record. Ended once, it stays as it is."""
        if self.place.trajectory == self.place.journal:
            with Journal.open(self.place.journal) as journal:
                steps = journal.trajectory.steps
                journal.close(final_metrics=final_metrics(spent_in(steps), len(steps)), extra=extra)
        return self.place.trajectory.absolute()

    @contextlib.contextmanager
    def _open(self) -> Iterator[tuple[Journal, SnapshotStore]]:
        with self.place.held(resume=False):
            known = self.place.journal.exists()
            with (
                Journal.open(self.place.journal) if known else self.place.create(self._header()) as journal,
                SnapshotStore(self.place.checkpoints, max_bytes=_CHECKPOINT_BYTES) as store,
            ):
                yield journal, store

    async def _run(
        self, recorder: OnDisk, store: SnapshotStore, cancelled: Callable[[], Awaitable[bool]], keep: Sequence[str]
    ) -> Over:
        if _has_finished(recorder.steps):
            return Over(None, "finished")
        begun = any(step.ours.checkpoint for step in recorder.steps)
        start = last_checkpoint(recorder.steps) if begun else store.import_tree(self.place.start)
        setting = self._setting(recorder, store, keep)
        async with Floor(store=store) as floor:
            environment = await floor.open_snapshot(start, sandbox_of(self.subject))
            if begun:
                rollout = await Rollout.resume(setting, environment, recorder)
            else:
                rollout = await Rollout.begin(setting, environment, recorder, *self._first_words())
            return await self._until(rollout, cancelled)

    async def _until(self, rollout: Rollout, cancelled: Callable[[], Awaitable[bool]]) -> Over:
        """Whoever asks for the end of a goal, and its deadline, cut a turn short: that turn has not happened."""
        running = asyncio.ensure_future(turns(rollout, cancelled))
        try:
            while not running.done():
                if self.goal.deadline is not None and time.time() >= self.goal.deadline:
                    return Over("limit", "the deadline has passed")
                if await cancelled():
                    return Over("cancelled", "somebody asked for its end")
                await asyncio.wait([running], timeout=_LOOK)
            return running.result()
        finally:
            running.cancel()
            await asyncio.wait([running])

    def _setting(self, recorder: OnDisk, store: SnapshotStore, keep: Sequence[str]) -> Setting:
        name = recorder.journal.trajectory.trajectory_id or ""
        turns = sum(step.source == "agent" for step in recorder.steps[: _last_word(recorder.steps)])
        limits = Limits(turns=turns + TURNS, tokens=self.goal.budget_tokens, wall_seconds=None)
        return Setting(
            toolmaker=self._tools,
            converse=lambda: self.model.converse(Sampling(), name),
            window=self.model.window,
            limits=limits,
            constraints=self.goal.constraints,
            changed=store.diff,
            tidy=lambda kept: store.collect([*kept, *keep], max_bytes=_CHECKPOINT_BYTES // 2),
            breaker=lambda: Breaker(Watch()),
        )

    def _tools(self, work: Work) -> Sequence[Tool]:
        return tools_for(self.subject, work, self.home, Limits().tool_seconds, ScratchNotes(self.place.notes))

    def _first_words(self) -> tuple[str, str]:
        start = self.subject.start
        system = system_text(standing_instructions(start.files), self.goal.constraints.describe())
        return system, opening_text(self.goal.instruction, start, [_FACTS.format(success=self.goal.success)])

    @property
    def _asked(self) -> str:
        """The same for goals that ask for the same thing of the same files."""
        parts = (self.subject.start.digest, self.goal.success, self.goal.instruction)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _header(self) -> Trajectory:
        goal = self.goal
        told = {"goal_id": goal.goal_id, "task_digest": self._asked}
        about = {"trainable": self.model.trainable}
        return new_record(goal.goal_id, self.model.name, told, self._tools(Work()), about)


def _last_word(steps: Sequence[Step]) -> int:
    """The place of what was last said to the agent between attempts."""
    after = [at for at, step in enumerate(steps) if (step.ours.model_extra or {}).get("after_attempt")]
    return after[-1] if after else 0


def _has_finished(steps: Sequence[Step]) -> bool:
    """Whether the last thing on record is the agent's own word that it has finished."""
    last = steps[-1] if steps else None
    if last is None or last.source != "agent":
        return False
    failed = {
        result.source_call_id
        for result in (last.observation.results if last.observation else [])
        if (result.extra or {}).get("failed")
    }
    return any(call.function_name == "finish" and call.tool_call_id not in failed for call in last.tool_calls or [])
