"""A training run from its configuration to its result: put together, begun or taken up again, and summed up."""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gametape.agent.limits import RolloutLimits
from gametape.core.config import RunConfig
from gametape.core.errors import BadInput
from gametape.core.seeds import seed_for
from gametape.engines import smollm2
from gametape.engines.model_names import find_weights
from gametape.train import checkpoints
from gametape.train.alarms import AlarmMonitor
from gametape.train.arms import batch_builder_for
from gametape.train.async_source import AsyncSource
from gametape.train.behaviour import BehaviourMonitor
from gametape.train.checkpoints import Checkpoint
from gametape.train.coach_annotator import CoachAnnotator
from gametape.train.forgetting_probe import ForgettingProbe
from gametape.train.held_out_eval import HeldOutEvaluator
from gametape.train.learner import Learner, UpdateMetrics
from gametape.train.loop import TrainingCallbacks, TrainingLoop
from gametape.train.metrics import MetricsLog, read_metrics, truncate_file
from gametape.train.policy import TrainablePolicy, create_tiny_policy, load_policy
from gametape.train.prompts import Curriculum, PromptDataset, WorldPromptDataset, open_prompt_dataset
from gametape.train.replay_buffer import ReplayBuffer
from gametape.train.run_directory import START_PREFIX, RunDirectory
from gametape.train.sources import DemonstrationSource, NullAnnotator, RolloutSource, RolloutWorker, SyncSource
from gametape.train.warm_start import warm_start

_SUCCESS_MILESTONES = (0.5, 0.8, 0.9)
"""Rates of held-out success whose first time is told."""


@dataclass
class RunCallbacks(TrainingCallbacks):
    """Who is told how a run goes, its first stage included."""

    warm_start: Callable[[int, int, UpdateMetrics], None] = field(default=lambda _done, _of, _update: None)


async def train(config: RunConfig, directory: RunDirectory, home: Path, callbacks: RunCallbacks) -> dict[str, Any]:
    """Begin, or go on after the last checkpoint; the directory is held by the caller."""
    async with open_prompt_dataset(config.tasks, config.seed, home, config.rl.turns) as supply:
        await _prepare_start_weights(config, directory, home, supply, callbacks)
        return await _run_training(config, directory, home, supply, callbacks)


async def _run_training(
    config: RunConfig, directory: RunDirectory, home: Path, dataset: PromptDataset, callbacks: RunCallbacks
) -> dict[str, Any]:
    policy = load_policy(directory.start)
    saved = checkpoints.latest(directory.checkpoints)
    checkpoint = checkpoints.load(saved) if saved else None
    if (
        checkpoint is None
        and directory.metrics.exists()
        and any(line["step"] for line in read_metrics(directory.metrics))
    ):
        raise BadInput(f"{directory.root}: the run has got somewhere, but its checkpoints are gone; begin another")
    sizes = checkpoint.state["sizes"] if checkpoint else {"metrics": 0, "targets": 0, "behaviour": 0}
    truncate_file(directory.targets, sizes["targets"])
    log = MetricsLog(directory.metrics, sizes["metrics"])
    behaviour = BehaviourMonitor(directory.behaviour, sizes["behaviour"])
    run = _build_loop(config, directory, home, policy, dataset, log, behaviour, callbacks)
    try:
        if checkpoint:
            run.restore(checkpoint)
            await run.publish()
            run.reorder_pending()
        stopped_by = await run.train()
    finally:
        run.log.close()
        run.behaviour.close()
        await run.source.close()
    return summary(run, stopped_by)


def summary(run: TrainingLoop, stopped_by: str) -> dict[str, Any]:
    progress, config = run.progress, run.config
    first, last = progress.scores[0], progress.scores[-1]
    return {
        "run": str(run.directory.root.absolute()),
        "arm": config.arm,
        "steps": progress.step,
        "episodes": progress.episodes,
        "success_before": first["success"],
        "success_after": last["success"],
        "episodes_to": {f"{target:g}": progress.episodes_to(target) for target in _SUCCESS_MILESTONES},
        "tokens": progress.tokens.to_dict(),
        "flops": run.flops,
        "dropped": progress.dropped,
        "staleness": {str(age): count for age, count in sorted(progress.staleness.items())},
        "seconds": round(progress.seconds, 1),
        "stopped_by": stopped_by,
    }


async def _prepare_start_weights(
    config: RunConfig, directory: RunDirectory, home: Path, dataset: PromptDataset, callbacks: RunCallbacks
) -> None:
    """`start/`, whole or not there: the weights that the run begins with."""
    if directory.start.exists():
        return
    with tempfile.TemporaryDirectory(dir=directory.root, prefix=START_PREFIX) as scratch:
        place = Path(scratch) / "start"
        if config.model == "tiny":
            create_tiny_policy(place, config.tiny, seed_for(config.seed, "weights"))
            policy = load_policy(place)
            if not isinstance(dataset, WorldPromptDataset):
                raise BadInput("model: a tiny policy knows the words of worlds only; give worlds:NAME as tasks")
            if config.warm.episodes:
                await warm_start(policy, dataset.specs, config, callbacks.warm_start)
        else:
            found = smollm2.model_directory(home) if config.model == "smollm2" else find_weights(Path(config.model))
            if not found.is_dir():
                raise BadInput(f"model: {config.model}: no such directory; give tiny, smollm2, weights or a run")
            policy = load_policy(found)
        shutil.rmtree(place, ignore_errors=True)
        made = checkpoints.save(Path(scratch) / "made", 0, Checkpoint(policy.weights(), {}, files=policy.files), keep=1)
        made.rename(directory.start)


def _build_loop(
    config: RunConfig,
    directory: RunDirectory,
    home: Path,
    policy: TrainablePolicy,
    dataset: PromptDataset,
    log: MetricsLog,
    behaviour: BehaviourMonitor,
    callbacks: RunCallbacks,
) -> TrainingLoop:
    rl = config.rl
    learner = Learner(policy, config)
    limits = RolloutLimits(turns=rl.turns, turn_tokens=rl.turn_tokens, wall_seconds=None)
    model = policy.sampler()
    players = RolloutWorker(model, dataset, limits, rl.temperature, config.seed)
    coaching = CoachAnnotator(config, model, limits) if config.uses_ttf and not config.asynchronous else None
    return TrainingLoop(
        config=config,
        directory=directory,
        build_batch=batch_builder_for(config),
        learner=learner,
        source=_build_source(config, directory, home, policy, players, dataset, coaching),
        annotator=coaching,
        curriculum=Curriculum(
            len(dataset.buckets),
            rl.retire_pass_rate,
            rl.retire_samples,
            rl.replay_share,
            seed_for(config.seed, "cells"),
        ),
        evaluator=HeldOutEvaluator(model, dataset, limits, config.eval, config.seed),
        alarms=AlarmMonitor(config.alarms),
        log=log,
        replay_buffer=ReplayBuffer(config.ttf, config.seed),
        forgetting_probe=ForgettingProbe(learner.score, config.eval.forgetting_probe_size),
        behaviour=behaviour,
        callbacks=callbacks,
    )


def _build_source(
    config: RunConfig,
    directory: RunDirectory,
    home: Path,
    policy: TrainablePolicy,
    worker: RolloutWorker,
    dataset: PromptDataset,
    annotator: CoachAnnotator | None,
) -> RolloutSource:
    if config.arm == "sft":
        return DemonstrationSource(
            dataset, policy.dialect, config.warm.ordinary_rate, config.rl.group_size, config.seed
        )
    if config.asynchronous:
        return AsyncSource(config, directory.start, home, policy.weights())
    return SyncSource(worker, config.rl.group_size, annotator or NullAnnotator())
