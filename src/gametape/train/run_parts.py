"""Where the two halves of a run are, its learner and its sampler: in this process and beside it, unless a run is given
parts that are elsewhere."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gametape.core.config import RunConfig
from gametape.core.seeds import seed_for
from gametape.engines.torch.device import Placement, choose_placement
from gametape.train.activity import ActivityClock
from gametape.train.algorithms.base import Algorithm
from gametape.train.async_source import AsyncSource
from gametape.train.learner import LocalLearner, PolicyLearner
from gametape.train.memory_plan import MemoryPlan, check_memory, describe
from gametape.train.policy import TrainablePolicy, load_policy
from gametape.train.prompts import PromptDataset
from gametape.train.ranked_learner import RankedLearner, require_devices
from gametape.train.run_directory import RunDirectory
from gametape.train.shards import open_ranks
from gametape.train.sources import ConcurrentSource, LockstepSource, PolicySource, RolloutWorker, training_limits

PauseSampling = Callable[[], AbstractAsyncContextManager[None]]
"""Inside, no token is sampled from tensors that the learner changes."""


@dataclass(frozen=True)
class RunContext:
    """What the parts of a run are made from."""

    config: RunConfig
    directory: RunDirectory
    home: Path
    policy: TrainablePolicy
    dataset: PromptDataset
    algorithm: Algorithm
    clock: ActivityClock


class RunParts(Protocol):
    """Opens what learns and what samples."""

    def choose_placement(self, config: RunConfig) -> Placement:
        """What it computes on, of the kinds that the configuration leaves open."""
        ...

    def plan_memory(
        self, model: Path, config: RunConfig, placement: Placement, say: Callable[[str], None]
    ) -> MemoryPlan | None:
        """Before a weight is loaded, so that a run that does not fit allocates nothing; None where that is not known
        here."""
        ...

    def load_policy(self, directory: Path, placement: Placement, plan: MemoryPlan | None) -> TrainablePolicy: ...

    def open_learner(self, run: RunContext) -> PolicyLearner: ...

    def open_source(self, run: RunContext) -> tuple[PolicySource, PauseSampling]: ...


class LocalParts:
    """`RunParts` of this machine."""

    def choose_placement(self, config: RunConfig) -> Placement:
        placement = choose_placement(config.device, config.dtype)
        require_devices(config, placement.device)
        return placement

    def plan_memory(
        self, model: Path, config: RunConfig, placement: Placement, say: Callable[[str], None]
    ) -> MemoryPlan | None:
        plan = check_memory(model, config, placement)
        say(describe(plan, config, placement))
        return plan

    def load_policy(self, directory: Path, placement: Placement, plan: MemoryPlan | None) -> TrainablePolicy:
        policy = load_policy(directory, plan.placement if plan else placement)
        policy.memory = plan
        return policy

    def open_learner(self, run: RunContext) -> PolicyLearner:
        """In this process, or in several of its own; adapters are where learning is."""
        config, policy = run.config, run.policy
        if config.ranks > 1:
            return RankedLearner(policy, config, run.algorithm, run.directory)
        policy.adapt(config.lora, seed_for(config.seed, "adapters"))
        return LocalLearner(policy, config, run.algorithm, open_ranks(policy.placement))

    def open_source(self, run: RunContext) -> tuple[PolicySource, PauseSampling]:
        config, policy = run.config, run.policy
        if run.algorithm.asynchronous:
            return AsyncSource(config, run.directory.start, run.home, policy.weights()), nullcontext
        model = policy.sampler(threaded=not config.rl.reproducible, clock=run.clock)
        worker = RolloutWorker(model, run.dataset, config, run.clock, run.algorithm.reward)
        annotator = run.algorithm.make_annotator(model, training_limits(config))
        kind = LockstepSource if config.rl.reproducible else ConcurrentSource
        return kind(worker, annotator), model.engine.pause_for_update
