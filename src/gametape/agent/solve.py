"""`gametape solve`: one attempt at a task, from its starting tree to its verdict. It can be resumed."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gametape.agent.agent_state import AgentState
from gametape.agent.allowed_hosts import allow_hosts, network_summary
from gametape.agent.attempt_directory import AttemptDirectory
from gametape.agent.breaker import NullBreaker, RolloutBreaker
from gametape.agent.budget import ToldBudget
from gametape.agent.constraints import Constraints
from gametape.agent.limits import RolloutEnd, RolloutLimits, cut_off_warnings
from gametape.agent.model_use import attempt_outcomes, models_used, route_of
from gametape.agent.notes import DirectoryNoteStore
from gametape.agent.recorded_steps import usage_from_steps
from gametape.agent.recorder import JournalRecorder, final_metrics, new_trajectory
from gametape.agent.replay import active_record, checkpoint_at
from gametape.agent.rollout import Rollout, RolloutConfig, StepCallback
from gametape.agent.session import open_checkpoints, open_workspace, start_rollout, with_checkpoints
from gametape.agent.task_setup import (
    initial_prompts,
    limits_for_task,
    snapshot_start,
    task_sandbox_spec,
    task_tools,
)
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
from gametape.record.model_outcomes import record_outcomes
from gametape.record.source_tree import SourceTree
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.verify.git_patch import make_git_patch
from gametape.verify.submission import read_submission
from gametape.verify.verifier import Verifier

_CACHE_DIRECTORIES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")


@dataclass(frozen=True)
class SolveRequest:
    """The task, the model, the directory of the attempt, and how the agent works on it."""

    task: LoadedTask
    model: Model
    directory: AttemptDirectory
    home: Path
    limits: RolloutLimits = field(default_factory=RolloutLimits)
    sampling: Sampling = field(default_factory=Sampling)
    constraints: Constraints = field(default_factory=Constraints)
    constrained_decoding: bool = False
    tools: frozenset[str] | None = None
    """The standard tools that are offered, beside `finish`; None offers all."""
    make_breaker: Callable[[], RolloutBreaker] = NullBreaker
    hosts: tuple[str, ...] = ()
    """Hosts that the agent may reach through the logging proxy."""


@dataclass(frozen=True)
class SolveResult:
    """How an attempt ended. `verdict` is None where it was interrupted, and where the model never answered."""

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
    models: list[dict[str, Any]] = field(default_factory=list)
    """The models that took part: name, turns, tokens, cost, and why where a route was chosen."""
    escalations: list[dict[str, Any]] = field(default_factory=list)
    """Where the work was handed to a stronger model: step and reason."""
    cut_off: int = 0
    """Turns that the limit of tokens cut off."""
    warnings: tuple[str, ...] = ()
    exit_code: int = 1
    """For the outcome `error`: 3 where something is missing here, such as a key or a server; else 1."""
    network: dict[str, Any] | None = None
    """The hosts that were allowed and what was asked of them; None without hosts."""


async def solve(request: SolveRequest, resume: bool = False, on_step: StepCallback = lambda _step: None) -> SolveResult:
    """Attempt a task, or resume an attempt. Cancelling it closes the record: no finished turn is lost."""
    header = None if resume else _header(request)
    with request.directory.lock(resume):
        if header is None:
            begun = request.directory.load_trajectory()
            _check_same_request(request, begun)
            if finished := _finished_result(request, begun):
                return finished
            journal = request.directory.reopen_journal()
        else:
            request.directory.require_empty()
            journal = request.directory.create_journal(header)
        return await _attempt(request, journal, on_step)


def _finished_result(request: SolveRequest, record: Trajectory) -> SolveResult | None:
    """The result of an attempt that the agent had finished and the verifier judged: there is nothing to resume."""
    extra = record.extra or {}
    if extra.get("outcome") not in ("passed", "failed") or not extra.get("verdict"):
        return None
    usage, used = usage_from_steps(record.steps), models_used(record)
    return SolveResult(
        outcome=extra["outcome"],
        reason=str(extra.get("reason") or ""),
        trajectory=request.directory.trajectory.absolute(),
        workspace=request.directory.workspace.absolute(),
        patch=request.directory.patch.absolute(),
        verdict=Verdict.model_validate(extra["verdict"]),
        turns=usage.turns,
        tokens=usage.tokens,
        cost_usd=usage.cost_usd,
        seconds=0.0,
        models=used["models"],
        escalations=used["escalations"],
        cut_off=usage.cut_off,
        warnings=("finished before: nothing was asked of the model",),
        network=extra.get("network"),
    )


async def _attempt(request: SolveRequest, journal: Journal, on_step: StepCallback) -> SolveResult:
    task = request.task
    with journal, open_checkpoints(request.directory.checkpoints) as store:
        recorder = JournalRecorder(journal)
        budget = ToldBudget(limits_for_task(request.limits, task))
        config = with_checkpoints(_rollout_config(request, journal.trajectory.trajectory_id or "", on_step), store)
        spec = allow_hosts(task_sandbox_spec(task), request.hosts, request.directory.network)
        async with open_workspace(store, recorder, spec, lambda: snapshot_start(store, task)) as workspace:
            rollout = await start_rollout(
                config,
                workspace,
                recorder,
                lambda: initial_prompts(task, request.constraints.describe(), "full", budget.opening(), request.hosts),
            )
            end = await _run(rollout)
            seconds = rollout.usage.seconds
        usage = recorder.digest.used()
        _export_result(request, store, checkpoint_at(active_record(recorder))[0])
        never_answered = end.outcome == "error" and usage.turns == 0
        verdict = None
        if end.outcome != "cancelled" and not never_answered:
            verdict = await asyncio.to_thread(_verify, request)
        outcome = "passed" if verdict and verdict.passed else end.outcome or "failed"
        network = network_summary(request.hosts, request.directory.network)
        extra: Extra = {"outcome": outcome, "reason": end.reason, **network}
        if verdict:
            extra["verdict"] = verdict.model_dump(mode="json")
        if verdict and end.outcome != "error":
            name = journal.trajectory.trajectory_id or ""
            passed = outcome == "passed"
            record_outcomes(request.home, attempt_outcomes(name, recorder.steps, request.model.name, passed))
        used = models_used(journal.trajectory)
        path = journal.close(final_metrics=final_metrics(usage, len(recorder.steps)), extra=extra)
    return SolveResult(
        outcome=outcome,
        reason=end.reason,
        trajectory=path.absolute(),
        workspace=request.directory.workspace.absolute(),
        patch=request.directory.patch.absolute(),
        verdict=verdict,
        turns=usage.turns,
        tokens=usage.tokens,
        cost_usd=usage.cost_usd,
        seconds=seconds,
        models=used["models"],
        escalations=used["escalations"],
        cut_off=usage.cut_off,
        warnings=cut_off_warnings(usage, config.turn_tokens, config.limits.turn_tokens),
        exit_code=end.exit_code,
        network=network.get("network"),
    )


def _header(request: SolveRequest) -> Trajectory:
    name = f"{request.task.task.name}-{secrets.token_hex(6)}"
    settings = {"sampling": request.sampling.model_dump(), "limits": request.limits.model_dump()}
    return new_trajectory(
        name,
        request.model.name,
        {"task": request.task.task.name, "task_digest": request.task.digest, **_hosts_extra(request)},
        _tools(request, AgentState()),
        {**settings, "trainable": request.model.trainable, **route_of(request.model)},
    )


def _hosts_extra(request: SolveRequest) -> Extra:
    """Only where there are hosts: an attempt without them has the record that it always had."""
    return {"network_hosts": list(request.hosts)} if request.hosts else {}


def _check_same_request(request: SolveRequest, begun: Trajectory) -> None:
    """Raise `BadInput` unless the attempt was begun on this task and with this model."""
    extra = begun.extra or {}
    if extra.get("task_digest") != request.task.digest:
        raise BadInput(f"{request.directory.root}: holds an attempt at {extra.get('task')}, not at this task")
    if extra.get("network_hosts", []) != list(request.hosts):
        allowed = ", ".join(extra.get("network_hosts", [])) or "no hosts"
        raise BadInput(f"{request.directory.root}: was begun with {allowed} allowed; resume it with the same")
    if begun.agent.model_name != request.model.name:
        raise BadInput(
            f"{request.directory.root}: was begun with {begun.agent.model_name}, not with {request.model.name}"
        )


def _tools(request: SolveRequest, state: AgentState) -> Sequence[Tool]:
    notes = DirectoryNoteStore(request.directory.notes)
    seconds = limits_for_task(request.limits, request.task).tool_seconds
    return task_tools(request.task, state, request.home, seconds, notes, request.tools)


def _rollout_config(request: SolveRequest, name: str, on_step: StepCallback) -> RolloutConfig:
    limits = limits_for_task(request.limits, request.task)
    return RolloutConfig(
        model=request.model,
        make_tools=lambda state: _tools(request, state),
        name=name,
        sampling=request.sampling,
        constrained_decoding=request.constrained_decoding,
        limits=limits,
        constraints=request.constraints,
        on_step=on_step,
        make_breaker=request.make_breaker,
        told_budget=ToldBudget(limits),
    )


async def _run(rollout: Rollout) -> RolloutEnd:
    try:
        return await rollout.run()
    except asyncio.CancelledError:
        return RolloutEnd("cancelled", "interrupted; --resume goes on after the last finished turn")


def _export_result(request: SolveRequest, store: SnapshotStore, checkpoint: str) -> None:
    """Write the files as the last finished turn left them, and the patch. The patch covers what the verifier would
    read: no links, no odd names, nothing huge, nothing too deep."""
    request.directory.replace_workspace(lambda target: store.export(checkpoint, target))
    after = read_submission(request.task, request.directory.workspace).workspace
    tree = SourceTree({path: content for path, content in after.files.items() if not _is_cache(path)}, after.executable)
    patch = make_git_patch(request.task.start, tree)
    write_atomically(request.directory.patch, patch.encode("utf-8", "surrogateescape"))


def _is_cache(path: str) -> bool:
    return any(part in _CACHE_DIRECTORIES for part in path.split("/"))


def _verify(request: SolveRequest) -> Verdict:
    with Verifier(request.task, request.home) as verifier:
        return verifier.verify(request.directory.workspace, "full")
