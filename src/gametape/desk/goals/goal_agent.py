"""The agent that works on a goal: one conversation over all attempts, one sandbox at a time, recorded after every turn.

Killed at any instant, an attempt is called again and continues after its last finished turn. Between two attempts the
agent gets feedback in the same conversation, and its files are reset to the best state so far.
"""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gametape.agent.agent_state import AgentState
from gametape.agent.allowed_hosts import allow_hosts
from gametape.agent.breaker import BreakerTripped
from gametape.agent.budget import ToldBudget
from gametape.agent.events import RolloutEvent
from gametape.agent.limits import RolloutEnd, RolloutLimits, RolloutUsage, cut_off_warnings
from gametape.agent.model_use import attempt_outcomes, last_model, models_used, route_of
from gametape.agent.notes import DirectoryNoteStore
from gametape.agent.prompts import build_system_prompt, build_user_prompt, standing_instructions
from gametape.agent.recorded_steps import usage_from_steps
from gametape.agent.recorder import JournalRecorder, final_metrics, message_step, new_trajectory
from gametape.agent.replay import active_record, checkpoint_at
from gametape.agent.rollout import Rollout, RolloutConfig
from gametape.agent.session import open_checkpoints, open_workspace, start_rollout, with_checkpoints
from gametape.agent.task_setup import task_sandbox_spec, task_tools
from gametape.core.atif import Extra
from gametape.core.protocols import Tool
from gametape.core.step import Step
from gametape.core.trajectory import Trajectory
from gametape.desk.agent_turns import run_turns
from gametape.desk.goals.assurance import names
from gametape.desk.goals.goal import Goal, GoalDirectory
from gametape.desk.goals.history import ENVIRONMENT, git_file
from gametape.desk.own_repository import GIT_FILE
from gametape.engines.conversation import Model
from gametape.engines.router import Router
from gametape.record.journal import Journal
from gametape.record.loaded_task import LoadedTask
from gametape.record.model_outcomes import record_outcomes
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.watch.breaker import BREAKER_EVENT, BehaviourBreaker
from gametape.watch.monitor_set import MonitorSet

_POLL_SECONDS = 0.5


def max_turns_per_attempt(goal: Goal) -> int:
    return goal.max_turns or RolloutLimits().turns


_HANDED_OVER = "Another agent has worked on this before you, without success. You work on the files that it left."
_TOLD = {"context_full": "ended early", BREAKER_EVENT: "became repetitive"}
"""Events of an attempt that a person should know of."""


@dataclass(frozen=True)
class GoalAgent:
    """Runs the attempts of one goal."""

    directory: GoalDirectory
    goal: Goal
    task: LoadedTask
    model: Model
    home: Path
    held_before: bool = False
    """Whether the command succeeds over the untouched workspace."""
    pinned: tuple[str, ...] = ()
    """Files of the check beside the tests."""
    suite_seconds: float = 0.0
    """What one run of the command may take, going by its baseline."""

    async def attempt(self, cancelled: Callable[[], Awaitable[bool]], keep: Sequence[str]) -> dict[str, Any]:
        """Run turns until the agent finishes or a limit is reached. Returns how it ended, its last checkpoint, and the
        cost of all attempts so far. The checkpoints in `keep` are not pruned."""
        with self._open() as (journal, store):
            recorder = JournalRecorder(journal)
            end = await self._run(recorder, store, cancelled, keep)
            usage = usage_from_steps(recorder.steps)
            return {
                "answered": usage.turns > _turns_before(recorder.steps),
                "exit_code": end.exit_code,
                "cut_off": usage.cut_off,
                "checkpoint": checkpoint_at(active_record(recorder))[0],
                "outcome": end.outcome,
                "reason": self._end_reason(end, recorder.steps),
                "tripped": isinstance(end, BreakerTripped),
                "tokens": usage.tokens,
                "cost_usd": usage.cost_usd,
                "turns": usage.turns,
            }

    async def give_feedback(self, number: int, text: str, checkpoint: str) -> None:
        """Tell the agent the result of an attempt, once. The next attempt starts from the files of `checkpoint`."""
        with self._open() as (journal, _):
            steps = journal.trajectory.steps
            if any((step.gametape_extra.model_extra or {}).get("after_attempt") == number for step in steps):
                return
            extra: dict[str, Any] = {"checkpoint": checkpoint, "after_attempt": number}
            if isinstance(self.model, Router) and self.model.can_escalate_from(last_model(steps)):
                event = RolloutEvent("escalation", f"attempt {number} did not reach the goal")
                text = f"{self._first_messages()[1]}\n\n{_HANDED_OVER}\n\n{text}"
                extra |= {"compacted": True, "events": [event.to_dict()]}
            await JournalRecorder(journal).append(message_step(len(steps) + 1, "user", text, **extra))

    def first_checkpoint(self) -> str:
        """The checkpoint of the pinned workspace."""
        return next(filter(None, (step.gametape_extra.checkpoint for step in self.directory.load_trajectory().steps)))

    def export(self, checkpoint: str, target: Path) -> None:
        with open_checkpoints(self.directory.checkpoints) as store:
            store.export(checkpoint, target)

    def models_used(self) -> dict[str, Any]:
        """The models that took part, and the escalations."""
        return models_used(self.directory.load_trajectory())

    def record_outcomes(self, reached: bool, ended: bool) -> None:
        """Record each attempt as a success or a failure of its model. The last one is left out where it ended for
        another reason than its work (`ended` is false)."""
        attempts = self._steps_by_attempt()
        numbered = [*enumerate(attempts, start=1)][: None if ended else -1]
        for number, steps in numbered:
            passed = reached and number == len(attempts)
            key = f"{self.goal.goal_id}/{number}"
            record_outcomes(self.home, attempt_outcomes(key, steps, self.model.name, passed))

    def warnings(self, cut_off: int) -> list[str]:
        """What a person should know about the attempts."""
        limits = self._limits()
        turn_tokens = RolloutConfig(self.model, self._tools, limits=limits).turn_tokens
        told = [
            f"attempt {number} {_TOLD[event['kind']]}: {event['detail']}"
            for number, steps in enumerate(self._steps_by_attempt(), start=1)
            for step in steps
            for event in step.gametape_extra.events or []
            if event.get("kind") in _TOLD
        ]
        return [*cut_off_warnings(RolloutUsage(cut_off=cut_off), turn_tokens, limits.turn_tokens), *dict.fromkeys(told)]

    def _steps_by_attempt(self) -> list[list[Step]]:
        attempts: list[list[Step]] = [[]]
        for step in self.directory.load_trajectory().steps:
            if (step.gametape_extra.model_extra or {}).get("after_attempt"):
                attempts.append([])
            attempts[-1].append(step)
        return attempts

    def record_no_attempt(self) -> None:
        """Make the record of a goal that needs no work: what would have been asked."""
        if not self.directory.trajectory.exists():
            self.directory.create_journal(self._header([message_step(1, "user", self._user_prompt())])).release()

    def close_record(self, extra: Extra) -> Path:
        """Close the journal, once, and return the path of the trajectory."""
        if self.directory.trajectory == self.directory.journal:
            with Journal.open(self.directory.journal) as journal:
                steps = journal.trajectory.steps
                journal.close(final_metrics=final_metrics(usage_from_steps(steps), len(steps)), extra=extra)
        return self.directory.trajectory.absolute()

    @contextlib.contextmanager
    def _open(self) -> Iterator[tuple[Journal, SnapshotStore]]:
        with self.directory.lock(resume=False):
            exists = self.directory.journal.exists()
            with (
                Journal.open(self.directory.journal)
                if exists
                else self.directory.create_journal(self._header()) as journal,
                open_checkpoints(self.directory.checkpoints) as store,
            ):
                yield journal, store

    async def _run(
        self,
        recorder: JournalRecorder,
        store: SnapshotStore,
        cancelled: Callable[[], Awaitable[bool]],
        keep: Sequence[str],
    ) -> RolloutEnd:
        if _has_finished(recorder.steps):
            return RolloutEnd(None, "finished")
        config = with_checkpoints(self._rollout_config(recorder), store, keep)
        begun = any(step.gametape_extra.checkpoint for step in recorder.steps)
        spec = self._sandbox_spec()
        async with open_workspace(store, recorder, spec, lambda: store.import_tree(self.directory.start)) as workspace:
            if self.has_history and not begun:
                await workspace.put(GIT_FILE, git_file(self.directory.history.absolute()))
            rollout = await start_rollout(config, workspace, recorder, self._first_messages)
            return await self._run_until_deadline(rollout, cancelled)

    async def _run_until_deadline(self, rollout: Rollout, cancelled: Callable[[], Awaitable[bool]]) -> RolloutEnd:
        """Run turns until the deadline or a cancellation. A turn that either cuts short has not happened."""
        running = asyncio.ensure_future(run_turns(rollout, cancelled))
        try:
            while not running.done():
                if self.goal.deadline is not None and time.time() >= self.goal.deadline:
                    return RolloutEnd("limit", "the deadline has passed")
                if await cancelled():
                    return RolloutEnd("cancelled", "it was cancelled")
                await asyncio.wait([running], timeout=_POLL_SECONDS)
            return running.result()
        finally:
            running.cancel()
            await asyncio.wait([running])

    def _rollout_config(self, recorder: JournalRecorder) -> RolloutConfig:
        name = recorder.journal.trajectory.trajectory_id or ""
        turns = _turns_before(recorder.steps)
        limits = self._limits(turns)
        return RolloutConfig(
            model=self.model,
            make_tools=self._tools,
            name=name,
            limits=limits,
            constraints=self.goal.constraints,
            make_breaker=lambda: BehaviourBreaker(MonitorSet()),
            told_budget=self._told_budget(limits, turns),
        )

    def _end_reason(self, end: RolloutEnd, steps: Sequence[Step]) -> str:
        """Why an attempt ended, with the turns of this attempt alone."""
        counted = f"{self._limits(_turns_before(steps)).turns} turns"
        return f"{max_turns_per_attempt(self.goal)} turns" if end.reason == counted else end.reason

    def _limits(self, turns_before: int = 0) -> RolloutLimits:
        """Turns are those of one attempt, after `turns_before` of earlier ones; tokens and dollars are the goal's."""
        goal, usual = self.goal, RolloutLimits()
        return RolloutLimits(
            turns=turns_before + max_turns_per_attempt(goal),
            turn_tokens=goal.max_turn_tokens or usual.turn_tokens,
            tokens=goal.budget_tokens,
            cost_usd=goal.budget_usd,
            wall_seconds=None,
            tool_seconds=goal.max_tool_seconds or max(usual.tool_seconds, self.suite_seconds),
        )

    def _told_budget(self, limits: RolloutLimits, turns_before: int) -> ToldBudget:
        return ToldBudget(limits, turns_before, deadline=self.goal.deadline, began=self.goal.created)

    def _tools(self, work: AgentState) -> Sequence[Tool]:
        notes = DirectoryNoteStore(self.directory.notes)
        seconds = self._limits().tool_seconds
        return task_tools(self.task, work, self.home, seconds, notes, history=self.has_history)

    @property
    def has_history(self) -> bool:
        """Whether the agent can read the workspace's git history."""
        return self.directory.history.is_dir()

    def _sandbox_spec(self) -> SandboxSpec:
        spec = allow_hosts(task_sandbox_spec(self.task), self.goal.hosts, self.directory.network)
        if not self.has_history:
            return spec
        policy = spec.policy
        seen = {
            "read_only": (*policy.read_only, str(self.directory.history.absolute())),
            "environment": (*policy.environment, *ENVIRONMENT),
        }
        return spec.model_copy(update={"policy": policy.model_copy(update=seen)})

    def _first_messages(self) -> tuple[str, str]:
        start = self.task.start
        goal = self.goal
        system = build_system_prompt(standing_instructions(start.files), goal.constraints.describe(), hosts=goal.hosts)
        return system, self._user_prompt()

    def _user_prompt(self) -> str:
        facts = [" ".join(self._what_counts()), self._told_budget(self._limits(), 0).opening()]
        return build_user_prompt(self.goal.instruction, self.task.start, facts)

    def _what_counts(self) -> list[str]:
        facts = [
            f"You are done when this command succeeds: `{self.goal.success}`.",
            "It is run where you have no access, over your files with the existing tests, their configuration and the "
            "files of the check as they were: changes to those do not count.",
        ]
        if self.pinned:
            facts.append(f"Files of the check: {names(self.pinned)}.")
        if self.goal.held_out:
            facts.append("Tests that you cannot see are run as well.")
        if self.goal.strict:
            facts.append("No test may be skipped, expected to fail or deselected.")
        if self.has_history:
            facts.append("You can read the git history (log, show, blame, diff), but not commit.")
        if self.held_before:
            facts.append("It succeeds already, and must still succeed when you are done.")
        return facts

    @property
    def _request_digest(self) -> str:
        """A digest of the request and the files: the same for the same request over the same files."""
        parts = (self.task.start.digest, self.goal.success, self.goal.instruction)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _header(self, steps: Sequence[Step] = ()) -> Trajectory:
        goal = self.goal
        hosts = {"network_hosts": list(goal.hosts)} if goal.hosts else {}
        extra = {"goal_id": goal.goal_id, "task_digest": self._request_digest, **hosts}
        agent_extra = {"trainable": self.model.trainable, **route_of(self.model)}
        return new_trajectory(goal.goal_id, self.model.name, extra, self._tools(AgentState()), agent_extra, steps)


def _turns_before(steps: Sequence[Step]) -> int:
    """The turns of earlier attempts: those before the last feedback."""
    after = [at for at, step in enumerate(steps) if (step.gametape_extra.model_extra or {}).get("after_attempt")]
    return usage_from_steps(steps[: after[-1]]).turns if after else 0


def _has_finished(steps: Sequence[Step]) -> bool:
    """Whether the last recorded step is a successful call of `finish`."""
    last = steps[-1] if steps else None
    if last is None or last.source != "agent":
        return False
    failed = {
        result.source_call_id
        for result in (last.observation.results if last.observation else [])
        if (result.extra or {}).get("failed")
    }
    return any(call.function_name == "finish" and call.tool_call_id not in failed for call in last.tool_calls or [])
