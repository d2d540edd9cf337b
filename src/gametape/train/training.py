"""A training run from its configuration to its result: put together, begun or taken up again, and summed up."""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gametape.agent.limits import Limits
from gametape.core.config import RunConfig
from gametape.core.errors import BadInput
from gametape.engines import smollm2
from gametape.engines.naming import weights_in
from gametape.train import checkpoints
from gametape.train.alarms import Alarms
from gametape.train.apart import Apart
from gametape.train.arms import arm_of
from gametape.train.behaviour import Behaviour
from gametape.train.checkpoints import Checkpoint
from gametape.train.coaching import Coaching
from gametape.train.curriculum import Curriculum
from gametape.train.held_out import HeldOut
from gametape.train.learner import Learner, Update
from gametape.train.loop import Run, Watching
from gametape.train.metrics import MetricsLog, cut, read_metrics
from gametape.train.policy import Policy, make_tiny, open_policy
from gametape.train.rehearsal import Rehearsal
from gametape.train.run_directory import STARTING, RunDirectory
from gametape.train.seeds import seed_for
from gametape.train.shelf import Shelf
from gametape.train.shown import Shown
from gametape.train.source import InProcess, NobodyLooks, Players, Source
from gametape.train.supply import Supply, WorldSupply, supplied
from gametape.train.warm_start import warm_start

_TARGETS = (0.5, 0.8, 0.9)
"""Rates of held-out success whose first time is told."""


@dataclass
class Telling(Watching):
    """Who is told how a run goes, its first stage included."""

    warming: Callable[[int, int, Update], None] = field(default=lambda _done, _of, _update: None)


async def train(config: RunConfig, directory: RunDirectory, home: Path, telling: Telling) -> dict[str, Any]:
    """Begin, or go on after the last checkpoint; the directory is held by the caller."""
    async with supplied(config.tasks, config.seed, home, config.rl.turns) as supply:
        await _prepare(config, directory, home, supply, telling)
        return await _trained(config, directory, home, supply, telling)


async def _trained(
    config: RunConfig, directory: RunDirectory, home: Path, supply: Supply, telling: Telling
) -> dict[str, Any]:
    policy = open_policy(directory.start)
    saved = checkpoints.latest(directory.checkpoints)
    checkpoint = checkpoints.load(saved) if saved else None
    if (
        checkpoint is None
        and directory.metrics.exists()
        and any(line["step"] for line in read_metrics(directory.metrics))
    ):
        raise BadInput(f"{directory.root}: the run has got somewhere, but its checkpoints are gone; begin another")
    sizes = checkpoint.state["sizes"] if checkpoint else {"metrics": 0, "targets": 0, "behaviour": 0}
    cut(directory.targets, sizes["targets"])
    log = MetricsLog(directory.metrics, sizes["metrics"])
    behaviour = Behaviour(directory.behaviour, sizes["behaviour"])
    run = _assembled(config, directory, home, policy, supply, log, behaviour, telling)
    try:
        if checkpoint:
            run.restore(checkpoint)
            await run.publish()
            run.go_on()
        stopped_by = await run.train()
    finally:
        run.log.close()
        run.behaviour.close()
        await run.source.close()
    return summary(run, stopped_by)


def summary(run: Run, stopped_by: str) -> dict[str, Any]:
    progress, config = run.progress, run.config
    first, last = progress.scores[0], progress.scores[-1]
    return {
        "run": str(run.directory.root.absolute()),
        "arm": config.arm,
        "steps": progress.step,
        "episodes": progress.episodes,
        "success_before": first["success"],
        "success_after": last["success"],
        "episodes_to": {f"{target:g}": progress.episodes_to(target) for target in _TARGETS},
        "tokens": progress.tokens.plain(),
        "flops": run.flops,
        "dropped": progress.dropped,
        "staleness": {str(age): count for age, count in sorted(progress.staleness.items())},
        "seconds": round(progress.seconds, 1),
        "stopped_by": stopped_by,
    }


async def _prepare(config: RunConfig, directory: RunDirectory, home: Path, supply: Supply, telling: Telling) -> None:
    """`start/`, whole or not there: the weights that the run begins with."""
    if directory.start.exists():
        return
    with tempfile.TemporaryDirectory(dir=directory.root, prefix=STARTING) as scratch:
        place = Path(scratch) / "start"
        if config.model == "tiny":
            make_tiny(place, config.tiny, seed_for(config.seed, "weights"))
            policy = open_policy(place)
            if not isinstance(supply, WorldSupply):
                raise BadInput("model: a tiny policy knows the words of worlds only; give worlds:NAME as tasks")
            if config.warm.episodes:
                await warm_start(policy, supply.specs, config, telling.warming)
        else:
            found = smollm2.directory(home) if config.model == "smollm2" else weights_in(Path(config.model))
            if not found.is_dir():
                raise BadInput(f"model: {config.model}: no such directory; give tiny, smollm2, weights or a run")
            policy = open_policy(found)
        shutil.rmtree(place, ignore_errors=True)
        made = checkpoints.save(Path(scratch) / "made", 0, Checkpoint(policy.weights(), {}, files=policy.files), keep=1)
        made.rename(directory.start)


def _assembled(
    config: RunConfig,
    directory: RunDirectory,
    home: Path,
    policy: Policy,
    supply: Supply,
    log: MetricsLog,
    behaviour: Behaviour,
    telling: Telling,
) -> Run:
    rl = config.rl
    learner = Learner(policy, config)
    limits = Limits(turns=rl.turns, turn_tokens=rl.turn_tokens, wall_seconds=None)
    model = policy.sampler()
    players = Players(model, supply, limits, rl.temperature, config.seed)
    coaching = Coaching(config, model, limits) if config.uses_ttf and not config.asynchronous else None
    return Run(
        config=config,
        directory=directory,
        arm=arm_of(config),
        learner=learner,
        source=_source(config, directory, home, policy, players, supply, coaching),
        coaching=coaching,
        curriculum=Curriculum(
            len(supply.cells), rl.retire_pass_rate, rl.retire_samples, rl.replay_share, seed_for(config.seed, "cells")
        ),
        held_out=HeldOut(model, supply, limits, config.eval, config.seed),
        alarms=Alarms(config.alarms),
        log=log,
        shelf=Shelf(config.ttf, config.seed),
        rehearsal=Rehearsal(learner.scored, config.eval.rehearsed),
        behaviour=behaviour,
        watching=telling,
    )


def _source(
    config: RunConfig,
    directory: RunDirectory,
    home: Path,
    policy: Policy,
    players: Players,
    supply: Supply,
    coaching: Coaching | None,
) -> Source:
    if config.arm == "sft":
        return Shown(supply, policy.dialect, config.warm.ordinary_rate, config.rl.group_size, config.seed)
    if config.asynchronous:
        return Apart(config, directory.start, home, policy.weights())
    return InProcess(players, config.rl.group_size, coaching or NobodyLooks())
