"""A training run from its configuration to its result: assemble the parts, begin or resume, and sum up."""

import asyncio
import gc
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gametape.core.config import RunConfig
from gametape.core.errors import BadInput, GametapeError
from gametape.core.seeds import seed_for
from gametape.engines.model_names import find_weights
from gametape.train import checkpoints
from gametape.train.activity import ActivityClock
from gametape.train.alarm_advice import ArmTraits
from gametape.train.alarms import AlarmMonitor, BehaviourMonitor
from gametape.train.algorithms import make_algorithm
from gametape.train.algorithms.base import Algorithm
from gametape.train.checkpoints import CheckpointWriter
from gametape.train.context_window import read_model_config
from gametape.train.early_checks import TINY, find_model
from gametape.train.held_out_eval import ForgettingProbe, HeldOutEvaluator
from gametape.train.learner import PolicyLearner
from gametape.train.loop import TrainingCallbacks, TrainingLoop
from gametape.train.policy import create_tiny_policy, load_policy
from gametape.train.progress import TrainingProgress
from gametape.train.prompts import Curriculum, PromptDataset, open_prompt_dataset
from gametape.train.run_directory import START_PREFIX, MetricsLog, RunDirectory, read_metrics, truncate_file
from gametape.train.run_parts import LocalParts, RunContext, RunParts
from gametape.train.sources import (
    SplitSource,
)
from gametape.train.trackers import Tracker, open_trackers
from gametape.train.update_metrics import UpdateMetrics
from gametape.train.warm_start import tiny_language, warm_start

_THREADS = 64
"""For what rollouts wait for: a tool of one must never queue behind those of others."""
_SUCCESS_MILESTONES = (0.5, 0.8, 0.9)
"""Rates of held-out success whose first time is reported."""


@dataclass
class RunCallbacks(TrainingCallbacks):
    """Functions that are called as a run goes on, its warm start included."""

    warm_start: Callable[[int, int, UpdateMetrics], None] = field(default=lambda _done, _of, _update: None)
    planned: Callable[[str], None] = field(default=lambda _memory: None)
    """Before the weights are loaded: one line about the memory that the run will take."""
    resumed: Callable[[TrainingProgress], None] = field(default=lambda _progress: None)


def run_training(
    config: RunConfig,
    out_dir: Path,
    *,
    home: Path | None = None,
    dataset: PromptDataset | None = None,
    algorithm: Algorithm | type[Algorithm] | None = None,
    callbacks: RunCallbacks | None = None,
    given: Sequence[str] = (),
) -> dict[str, Any]:
    """Begin a run in a new directory, or go on with the one that is there, and return its summary. A run that goes on
    may have another length, and other settings of `config_changes.RESUMABLE_SETTINGS`.

    `dataset` takes the place of `config.tasks`, and `algorithm`, a class or an object, that of `config.arm`; both then
    stay in this process, so that `rl.asynchronous` must be off; `given` names what the command line could not make
    again. `home` is where smollm2 and tasks' environments lie.
    """
    directory = RunDirectory(out_dir)
    with directory.lock() if directory.holds_run else directory.begin(config, given):
        directory.change_config(config)
        coroutine = train(config, directory, home or out_dir, dataset=dataset, algorithm=algorithm, callbacks=callbacks)
        return asyncio.run(coroutine)


async def train(
    config: RunConfig,
    directory: RunDirectory,
    home: Path,
    callbacks: RunCallbacks | None = None,
    *,
    dataset: PromptDataset | None = None,
    algorithm: Algorithm | type[Algorithm] | None = None,
    parts: RunParts | None = None,
) -> dict[str, Any]:
    """Begin, or go on after the last checkpoint, in a directory that has its configuration and is locked by the caller.
    See `run_training`. `parts` says where learner and sampler are: in this machine, unless given."""
    if (dataset or algorithm) and config.rl.asynchronous:
        raise BadInput(
            "rl.asynchronous: a dataset or an algorithm given as an object stays in this process; turn it off"
        )
    if algorithm and config.ranks > 1:
        raise BadInput("ranks: an algorithm given as an object stays in this process; name it as arm = module:Class")
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "rollouts"))
    callbacks, clock = callbacks or RunCallbacks(), ActivityClock()
    if algorithm is None:
        algorithm = make_algorithm(config)
    elif isinstance(algorithm, type):
        algorithm = algorithm(config)
    opened: AbstractAsyncContextManager[PromptDataset] = (
        nullcontext(dataset) if dataset else open_prompt_dataset(config, home, clock)
    )
    trackers = open_trackers(config.track, directory.root, config)
    parts = parts or LocalParts()
    placement = parts.choose_placement(config)
    known = directory.start if directory.start.exists() else None
    if known is None and config.model != TINY:
        known = find_model(config.model, home)
    plan = parts.plan_memory(known, config, placement, callbacks.planned) if known else None
    async with opened as prompts:
        await _prepare_start_weights(config, directory, home, prompts, callbacks)
        if not known:
            plan = parts.plan_memory(directory.start, config, placement, callbacks.planned)
        policy = parts.load_policy(directory.start, placement, plan)
        run = RunContext(config, directory, home, policy, prompts, algorithm, clock)
        return await _run_training(run, parts, callbacks, trackers)


async def _run_training(
    run: RunContext, parts: RunParts, callbacks: RunCallbacks, trackers: Sequence[Tracker]
) -> dict[str, Any]:
    directory = run.directory
    saved = checkpoints.latest(directory.checkpoints)
    state = checkpoints.load_state(saved) if saved else None
    if state is None and directory.metrics.exists() and any(line["step"] for line in read_metrics(directory.metrics)):
        raise BadInput(f"{directory.root}: the run has got somewhere, but its checkpoints are gone; begin another")
    sizes = state["sizes"] if state else {"metrics": 0, "targets": 0, "behaviour": 0}
    truncate_file(directory.targets, sizes["targets"])
    log = MetricsLog(directory.metrics, sizes["metrics"], trackers)
    behaviour = BehaviourMonitor(directory.behaviour, sizes["behaviour"])
    learner = parts.open_learner(run)
    try:
        loop = _build_loop(run, parts, learner, log, behaviour, callbacks)
        try:
            if saved and state:
                loop.restore(saved, state)
                await loop.publish()
                loop.reorder_pending()
                callbacks.resumed(loop.progress)
            stopped_by = await _train_while_it_learns(loop)
        finally:
            with suppress(GametapeError):
                loop.writer.finish()  # the one under way when something else ended the run
            log.close()
            behaviour.close()
            await loop.source.close()
    finally:
        learner.close()
    return summary(loop, stopped_by)


async def _train_while_it_learns(loop: TrainingLoop) -> str:
    """A learner that ends by itself ends the run at once, whatever the run is waiting for. What is there when it begins
    stays until its end: looking it through for garbage would hold up updates."""
    gc.collect()
    gc.freeze()
    training, ended = asyncio.ensure_future(loop.train()), asyncio.wrap_future(loop.learner.ended)
    try:
        await asyncio.wait((training, ended), return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            ended.result()
        return await training
    finally:
        training.cancel()
        ended.cancel()
        await asyncio.gather(training, ended, return_exceptions=True)
        gc.unfreeze()


def summary(loop: TrainingLoop, stopped_by: str) -> dict[str, Any]:
    progress, config = loop.progress, loop.config
    first, last = progress.scores[0], progress.scores[-1]
    return {
        "run": str(loop.directory.root.absolute()),
        "weights": str(find_weights(loop.directory.root).absolute()),
        "arm": config.arm,
        "steps": progress.step,
        "updates": progress.version,
        "groups": dict(progress.groups),
        "note": _note(loop),
        "episodes": progress.episodes,
        "success_before": first["success"],
        "success_after": last["success"],
        "episodes_to": {f"{target:g}": progress.episodes_to(target) for target in _SUCCESS_MILESTONES},
        "tokens": progress.tokens.to_dict(),
        "flops": loop.flops,
        "dropped": progress.dropped,
        "past_deadline": progress.past_deadline,
        "staleness": {str(age): count for age, count in sorted(progress.staleness.items())},
        "seconds": round(progress.seconds, 1),
        "tokens_per_second": round(progress.tokens.generated / progress.seconds, 1) if progress.seconds else 0.0,
        "time": progress.activity.shares,
        "device": loop.learner.device,
        "stopped_by": stopped_by,
    }


def _note(loop: TrainingLoop) -> str:
    """Why nothing was learned, and what to do, where that is so."""
    progress = loop.progress
    if progress.version or not progress.step:
        return ""
    failed, passed = progress.groups.get("all_fail", 0), progress.groups.get("all_pass", 0)
    if not loop.algorithm.compares_rollouts:
        return "no rollout was fit to be learned from: take easier tasks, or more episodes"
    kind = "all_fail" if not passed else "all_pass" if not failed else ""
    advice = ArmTraits.of_algorithm(loop.algorithm).advice("zero_variance", kind).partition(": ")[2]
    return f"no group had both a success and a failure: {advice}"


async def _prepare_start_weights(
    config: RunConfig, directory: RunDirectory, home: Path, dataset: PromptDataset, callbacks: RunCallbacks
) -> None:
    """`start/`, whole or not there: the weights that the run begins with."""
    if directory.start.exists():
        return
    with tempfile.TemporaryDirectory(dir=directory.root, prefix=START_PREFIX) as scratch:
        tiny = Path(scratch) / "start"
        if config.model == TINY:
            create_tiny_policy(tiny, config.tiny, seed_for(config.seed, "weights"), await tiny_language(dataset))
            policy = load_policy(tiny)
            if config.warm.episodes:
                await warm_start(policy, dataset, config, callbacks.warm_start)
        else:
            weights = find_model(config.model, home)
            policy = load_policy(weights)
            wanted = read_model_config(weights, config.context)
            policy.files["config.json"] = wanted.to_json_string(use_diff=True).encode()
        made = Path(scratch) / "made"
        checkpoints.save_model(made, policy.weights(), policy.files)
        made.rename(directory.start)


def _build_loop(
    run: RunContext,
    parts: RunParts,
    learner: PolicyLearner,
    log: MetricsLog,
    behaviour: BehaviourMonitor,
    callbacks: RunCallbacks,
) -> TrainingLoop:
    config, directory, dataset, algorithm = run.config, run.directory, run.dataset, run.algorithm
    rl = config.rl
    policy_source, pause = parts.open_source(run)
    own = algorithm.make_source(dataset, run.policy)
    return TrainingLoop(
        config=config,
        directory=directory,
        algorithm=algorithm,
        learner=learner,
        source=SplitSource(own, policy_source) if own else policy_source,
        policy_source=policy_source,
        curriculum=Curriculum(
            len(dataset.buckets),
            rl.retire_pass_rate,
            rl.retire_samples,
            rl.replay_share,
            seed_for(config.seed, "cells"),
        ),
        buckets=dataset.buckets,
        evaluator=HeldOutEvaluator(dataset, config.eval),
        alarms=AlarmMonitor(ArmTraits.of_algorithm(algorithm)),
        log=log,
        forgetting_probe=ForgettingProbe(learner.score, config.eval.forgetting_probe_size),
        behaviour=behaviour,
        writer=CheckpointWriter(directory.checkpoints, config.checkpoint.keep),
        clock=run.clock,
        pause_sampling=pause,
        callbacks=callbacks,
    )
