"""One attempt at one task, from the starting tree to the verdict, in a directory that survives whatever ends it."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gametape.agent.breaking import Breaker, NoBreaker
from gametape.agent.checkpoints import last_checkpoint
from gametape.agent.constraints import Constraints
from gametape.agent.limits import Limits, Over
from gametape.agent.notes import ScratchNotes
from gametape.agent.place import Place
from gametape.agent.recording import OnDisk, final_metrics, new_record, spent_in
from gametape.agent.rollout import Rollout, Setting, Watcher
from gametape.agent.work import Work
from gametape.agent.workshop import first_words, import_start, sandbox_of, tools_for
from gametape.core.atif import Extra
from gametape.core.errors import BadInput
from gametape.core.messages import Sampling
from gametape.core.protocols import Tool
from gametape.core.trajectory import Outcome, Trajectory
from gametape.core.verdict import Verdict
from gametape.engines.conversation import Model
from gametape.record.atomic import write_atomically
from gametape.record.journal import Journal
from gametape.sandbox.live import Floor, RewindableEnvironment
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.verify.export import export
from gametape.verify.patch import unified
from gametape.verify.pipeline import Verifier
from gametape.verify.subject import Subject
from gametape.verify.tree import Tree

_CHECKPOINT_BYTES = 2 << 30
"""What checkpoints may take on disk; old ones are dropped when half of it is used."""
_LEFT_BEHIND = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")


@dataclass(frozen=True)
class Order:
    """What is to be attempted, by whom, and where it is kept."""

    subject: Subject
    model: Model
    place: Place
    home: Path
    limits: Limits = field(default_factory=Limits)
    sampling: Sampling = field(default_factory=Sampling)
    constraints: Constraints = field(default_factory=Constraints)
    constrain: bool = False
    tools: frozenset[str] | None = None
    """Only these of the standard tools, and `finish`; None is all of them."""
    breaker: Callable[[], Breaker] = NoBreaker


@dataclass(frozen=True)
class Solved:
    """How an attempt ended. `verdict` is None where it was not finished."""

    outcome: Outcome
    reason: str
    trajectory: Path
    workspace: Path
    patch: Path
    verdict: Verdict | None
    turns: int
    tokens: int
    cost_usd: float
    seconds: float


async def solve(order: Order, resume: bool = False, watch: Watcher = lambda _step: None) -> Solved:
    """Attempt a task, or go on with an attempt. Cancelling it ends it in order: nothing that was finished is lost."""
    header = None if resume else _header(order)
    with order.place.held(resume):
        if header is None:
            _same_order(order, order.place.recorded())
        return await _attempt(order, order.place.create(header) if header else order.place.take_up(), watch)


async def _attempt(order: Order, journal: Journal, watch: Watcher) -> Solved:
    with journal, SnapshotStore(order.place.checkpoints, max_bytes=_CHECKPOINT_BYTES) as store:
        recorder = OnDisk(journal)
        async with Floor(store=store) as floor:
            begun = bool(recorder.steps) and any(step.ours.checkpoint for step in recorder.steps)
            start = last_checkpoint(recorder.steps) if begun else import_start(store, order.subject)
            environment = await floor.open_snapshot(start, sandbox_of(order.subject))
            setting = _setting(order, watch, recorder, store)
            rollout = await _begun(order, setting, environment, recorder, begun)
            over = await _run(rollout)
            seconds = rollout.spent.seconds
        spent = spent_in(recorder.steps)
        _leave_behind(order, store, last_checkpoint(recorder.steps))
        verdict = None if over.outcome == "cancelled" else await asyncio.to_thread(_verify, order)
        outcome = _outcome(over, verdict)
        told: Extra = {"outcome": outcome, "reason": over.reason}
        if verdict:
            told["verdict"] = verdict.model_dump(mode="json")
        path = journal.close(final_metrics=final_metrics(spent, len(recorder.steps)), extra=told)
    return Solved(
        outcome=outcome,
        reason=over.reason,
        trajectory=path.absolute(),
        workspace=order.place.workspace.absolute(),
        patch=order.place.patch.absolute(),
        verdict=verdict,
        turns=spent.turns,
        tokens=spent.tokens,
        cost_usd=spent.cost_usd,
        seconds=seconds,
    )


def _header(order: Order) -> Trajectory:
    name = f"{order.subject.task.name}-{secrets.token_hex(6)}"
    settings = {"sampling": order.sampling.model_dump(), "limits": order.limits.model_dump()}
    return new_record(
        name,
        order.model.name,
        {"task": order.subject.task.name, "task_digest": order.subject.digest},
        _tools(order, Work()),
        {**settings, "trainable": order.model.trainable},
    )


def _same_order(order: Order, begun: Trajectory) -> None:
    """An attempt is continued on the task and with the model it was begun with."""
    told = begun.extra or {}
    if told.get("task_digest") != order.subject.digest:
        raise BadInput(f"{order.place.root}: holds an attempt at {told.get('task')}, not at this task")
    if begun.agent.model_name != order.model.name:
        raise BadInput(f"{order.place.root}: was begun with {begun.agent.model_name}, not with {order.model.name}")


def _tools(order: Order, work: Work) -> Sequence[Tool]:
    notes = ScratchNotes(order.place.notes)
    return tools_for(order.subject, work, order.home, order.limits.tool_seconds, notes, order.tools)


def _setting(order: Order, watch: Watcher, recorder: OnDisk, store: SnapshotStore) -> Setting:
    name = recorder.journal.trajectory.trajectory_id or ""
    return Setting(
        toolmaker=lambda work: _tools(order, work),
        converse=lambda: order.model.converse(order.sampling, name, order.constrain),
        window=order.model.window,
        limits=order.limits,
        constraints=order.constraints,
        changed=store.diff,
        tidy=lambda kept: store.collect(kept, max_bytes=_CHECKPOINT_BYTES // 2),
        watch=watch,
        breaker=order.breaker,
    )


async def _begun(
    order: Order, setting: Setting, environment: RewindableEnvironment, recorder: OnDisk, begun: bool
) -> Rollout:
    if begun:
        return await Rollout.resume(setting, environment, recorder)
    system, opening = first_words(order.subject, order.constraints.describe())
    return await Rollout.begin(setting, environment, recorder, system, opening)


async def _run(rollout: Rollout) -> Over:
    try:
        return await rollout.run()
    except asyncio.CancelledError:
        return Over("cancelled", "interrupted; --resume goes on after the last finished turn")


def _leave_behind(order: Order, store: SnapshotStore, checkpoint: str) -> None:
    """The files as they were after the last finished turn, and what is different about them as far as the verifier
    would read them: no links, no odd names, nothing huge, nothing too deep."""
    order.place.replace_workspace(lambda target: store.export(checkpoint, target))
    after = export(order.subject, order.place.workspace).workspace
    kept = Tree({path: content for path, content in after.files.items() if not _is_left_behind(path)}, after.executable)
    patch = unified(order.subject.start, kept)
    write_atomically(order.place.patch, patch.encode("utf-8", "surrogateescape"))


def _is_left_behind(path: str) -> bool:
    return any(part in _LEFT_BEHIND for part in path.split("/"))


def _verify(order: Order) -> Verdict:
    with Verifier(order.subject, order.home) as verifier:
        return verifier.verify(order.place.workspace, "full")


def _outcome(over: Over, verdict: Verdict | None) -> Outcome:
    """What the verifier says goes before how it ended."""
    if verdict and verdict.passed:
        return "passed"
    return over.outcome or "failed"
