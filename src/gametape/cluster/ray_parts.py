"""A run whose learner and samplers are on a Ray cluster. The process that drives it holds no tensors of the policy."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError

from gametape.cluster.access import LOCAL
from gametape.cluster.event_log import EventLog
from gametape.cluster.nodes import living_nodes
from gametape.cluster.placement import require_room, wanted_resources
from gametape.cluster.ray_learner import RayLearner
from gametape.cluster.ray_source import RaySource
from gametape.cluster.sampler_actor import SamplerStart
from gametape.core.config import RunConfig
from gametape.core.errors import BadInput, GametapeError, MissingDependency
from gametape.engines.torch.device import Placement
from gametape.train.learner import PolicyLearner
from gametape.train.policy import TrainablePolicy, outline_policy
from gametape.train.run_parts import PauseSampling, RunContext
from gametape.train.sources import PolicySource


class ClusterLost(GametapeError):
    """Ray itself cannot go on. What is on disk is whole."""

    exit_code = 3


@contextmanager
def open_cluster(address: str, config: RunConfig) -> Iterator["RayParts"]:
    """`RunParts` on the cluster at an address, or on one that lives here for the block."""
    try:
        _connect(address, config)
    except (ConnectionError, ValueError, RuntimeError) as error:
        why = str(error).partition("\n")[0]
        raise MissingDependency(f"--ray {address}: no Ray cluster can be reached there: {why}") from error
    try:
        require_room(living_nodes(), config)
        yield RayParts()
    except RayError as error:
        why = str(error).partition("\n")[0]
        raise ClusterLost(f"the Ray cluster failed: {type(error).__name__}: {why}; --resume goes on") from error
    finally:
        ray.shutdown()


def _connect(address: str, config: RunConfig) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if address != LOCAL:
        ray.init(address=address, **quiet)
        return
    # On one machine its parts share the processors, as the threads of one process would.
    cpus = max(os.cpu_count() or 1, math.ceil(sum(part.cpus for part in wanted_resources(config))))
    memory = config.cluster.object_store_mb << 20
    ray.init(address=LOCAL, num_cpus=cpus, include_dashboard=False, object_store_memory=memory or None, **quiet)


class RayParts:
    """`RunParts` on the cluster that this process is connected to."""

    def __init__(self) -> None:
        self._epochs = count(1)

    def choose_placement(self, config: RunConfig) -> Placement:
        """The driver may be on a node without a GPU: what its parts compute on goes by what they ask for."""
        gpus = config.cluster.rank_gpus
        if config.device == "cuda" and not gpus:
            raise BadInput('device: "cuda" on a cluster needs cluster.rank_gpus = 1')
        if gpus and config.device != "cpu":
            return Placement("cuda", "bfloat16" if config.dtype == "auto" else config.dtype)
        return Placement("cpu", "float32" if config.dtype == "auto" else config.dtype)

    def plan_memory(self, *_arguments: Any) -> None:
        """Each rank and each sampler finds out where it is."""

    def load_policy(self, directory: Path, placement: Placement, *_plan: Any) -> TrainablePolicy:
        return outline_policy(directory, placement)

    def open_learner(self, run: RunContext) -> PolicyLearner:
        return RayLearner(run, run.policy.placement, self._epochs, EventLog(run.directory.root))

    def open_source(self, run: RunContext) -> tuple[PolicySource, PauseSampling]:
        config = run.config.model_dump_json()
        start = SamplerStart(config, str(run.directory.start.absolute()), str(run.home.absolute()))
        combine, events = run.algorithm.combine_annotator_states, EventLog(run.directory.root)
        return RaySource(start, run.config.cluster, self._epochs, combine, events), nullcontext
