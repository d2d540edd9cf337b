"""One attempt at one task, from the starting tree to the verdict, in a directory that survives whatever ends it."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gametape.agent.agent_state import AgentState
from gametape.agent.attempt_directory import AttemptDirectory
from gametape.agent.breaker import NullBreaker, RolloutBreaker
from gametape.agent.constraints import Constraints
from gametape.agent.limits import RolloutEnd, RolloutLimits
from gametape.agent.notes import DirectoryNoteStore
from gametape.agent.recorder import JournalRecorder, final_metrics, new_trajectory, usage_from_steps
from gametape.agent.replay import last_checkpoint
from gametape.agent.rollout import Rollout, RolloutConfig, StepCallback
from gametape.agent.task_setup import initial_prompts, snapshot_start, task_sandbox_spec, task_tools
from gametape.core.atif import Extra
from gametape.core.errors import BadInput
from gametape.core.messages import Sampling
from gametape.core.protocols import Tool
from gametape.core.trajectory import Outcome, Trajectory
from gametape.core.verdict import Verdict
from gametape.engines.conversation import Model
from gametape.record.atomic import write_atomically
from gametape.record.journal import Journal
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.sandbox.scheduler import RewindableWorkspace, SandboxScheduler
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.verify.git_patch import make_git_patch
from gametape.verify.submission import read_submission
from gametape.verify.verifier import Verifier

_CHECKPOINT_BYTES = 2 << 30
"""What checkpoints may take on disk; old ones are dropped when half of it is used."""
_CACHE_DIRECTORIES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")


@dataclass(frozen=True)
class SolveRequest:
    """What is to be attempted, by whom, and where it is kept."""

    subject: LoadedTask
    model: Model
    directory: AttemptDirectory
    home: Path
    limits: RolloutLimits = field(default_factory=RolloutLimits)
    sampling: Sampling = field(default_factory=Sampling)
    constraints: Constraints = field(default_factory=Constraints)
    constrained_decoding: bool = False
    tools: frozenset[str] | None = None
    """Only these of the standard tools, and `finish`; None is all of them."""
    make_breaker: Callable[[], RolloutBreaker] = NullBreaker


@dataclass(frozen=True)
class SolveResult:
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


async def solve(request: SolveRequest, resume: bool = False, on_step: StepCallback = lambda _step: None) -> SolveResult:
    """Attempt a task, or go on with an attempt. Cancelling it ends it in order: nothing that was finished is lost."""
    header = None if resume else _header(request)
    with request.directory.lock(resume):
        if header is None:
            _check_same_request(request, request.directory.load_trajectory())
        return await _attempt(
            request, request.directory.create_journal(header) if header else request.directory.reopen_journal(), on_step
        )


async def _attempt(request: SolveRequest, journal: Journal, on_step: StepCallback) -> SolveResult:
    with journal, SnapshotStore(request.directory.checkpoints, max_bytes=_CHECKPOINT_BYTES) as store:
        recorder = JournalRecorder(journal)
        async with SandboxScheduler(store=store) as floor:
            begun = bool(recorder.steps) and any(step.gametape_extra.checkpoint for step in recorder.steps)
            start = last_checkpoint(recorder.steps) if begun else snapshot_start(store, request.subject)
            environment = await floor.open_snapshot(start, task_sandbox_spec(request.subject))
            setting = _rollout_config(request, on_step, recorder, store)
            rollout = await _start_rollout(request, setting, environment, recorder, begun)
            over = await _run(rollout)
            seconds = rollout.usage.seconds
        spent = usage_from_steps(recorder.steps)
        _export_result(request, store, last_checkpoint(recorder.steps))
        verdict = None if over.outcome == "cancelled" else await asyncio.to_thread(_verify, request)
        outcome = _outcome(over, verdict)
        told: Extra = {"outcome": outcome, "reason": over.reason}
        if verdict:
            told["verdict"] = verdict.model_dump(mode="json")
        path = journal.close(final_metrics=final_metrics(spent, len(recorder.steps)), extra=told)
    return SolveResult(
        outcome=outcome,
        reason=over.reason,
        trajectory=path.absolute(),
        workspace=request.directory.workspace.absolute(),
        patch=request.directory.patch.absolute(),
        verdict=verdict,
        turns=spent.turns,
        tokens=spent.tokens,
        cost_usd=spent.cost_usd,
        seconds=seconds,
    )


def _header(request: SolveRequest) -> Trajectory:
    name = f"{request.subject.task.name}-{secrets.token_hex(6)}"
    settings = {"sampling": request.sampling.model_dump(), "limits": request.limits.model_dump()}
    return new_trajectory(
        name,
        request.model.name,
        {"task": request.subject.task.name, "task_digest": request.subject.digest},
        _tools(request, AgentState()),
        {**settings, "trainable": request.model.trainable},
    )


def _check_same_request(request: SolveRequest, begun: Trajectory) -> None:
    """An attempt is continued on the task and with the model it was begun with."""
    told = begun.extra or {}
    if told.get("task_digest") != request.subject.digest:
        raise BadInput(f"{request.directory.root}: holds an attempt at {told.get('task')}, not at this task")
    if begun.agent.model_name != request.model.name:
        raise BadInput(
            f"{request.directory.root}: was begun with {begun.agent.model_name}, not with {request.model.name}"
        )


def _tools(request: SolveRequest, state: AgentState) -> Sequence[Tool]:
    notes = DirectoryNoteStore(request.directory.notes)
    return task_tools(request.subject, state, request.home, request.limits.tool_seconds, notes, request.tools)


def _rollout_config(
    request: SolveRequest, on_step: StepCallback, recorder: JournalRecorder, store: SnapshotStore
) -> RolloutConfig:
    name = recorder.journal.trajectory.trajectory_id or ""
    return RolloutConfig(
        make_tools=lambda work: _tools(request, work),
        start_conversation=lambda: request.model.start_conversation(
            request.sampling, name, request.constrained_decoding
        ),
        window=request.model.window,
        limits=request.limits,
        constraints=request.constraints,
        changed_paths=store.diff,
        prune_checkpoints=lambda kept: store.collect(kept, max_bytes=_CHECKPOINT_BYTES // 2),
        on_step=on_step,
        make_breaker=request.make_breaker,
    )


async def _start_rollout(
    request: SolveRequest,
    config: RolloutConfig,
    workspace: RewindableWorkspace,
    recorder: JournalRecorder,
    resumed: bool,
) -> Rollout:
    if resumed:
        return await Rollout.resume(config, workspace, recorder)
    system, opening = initial_prompts(request.subject, request.constraints.describe())
    return await Rollout.begin(config, workspace, recorder, system, opening)


async def _run(rollout: Rollout) -> RolloutEnd:
    try:
        return await rollout.run()
    except asyncio.CancelledError:
        return RolloutEnd("cancelled", "interrupted; --resume goes on after the last finished turn")


def _export_result(request: SolveRequest, store: SnapshotStore, checkpoint: str) -> None:
    """The files as they were after the last finished turn, and what is different about them as far as the verifier
    would read them: no links, no odd names, nothing huge, nothing too deep."""
    request.directory.replace_workspace(lambda target: store.export(checkpoint, target))
    after = read_submission(request.subject, request.directory.workspace).workspace
    kept = SourceTree({path: content for path, content in after.files.items() if not _is_cache(path)}, after.executable)
    patch = make_git_patch(request.subject.start, kept)
    write_atomically(request.directory.patch, patch.encode("utf-8", "surrogateescape"))


def _is_cache(path: str) -> bool:
    return any(part in _CACHE_DIRECTORIES for part in path.split("/"))


def _verify(request: SolveRequest) -> Verdict:
    with Verifier(request.subject, request.home) as verifier:
        return verifier.verify(request.directory.workspace, "full")


def _outcome(end: RolloutEnd, verdict: Verdict | None) -> Outcome:
    """What the verifier says goes before how it ended."""
    if verdict and verdict.passed:
        return "passed"
    return end.outcome or "failed"
