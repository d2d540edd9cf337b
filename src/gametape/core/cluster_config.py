"""The `[cluster]` table of a run's configuration: how it lies on a Ray cluster."""

from typing import Annotated

from pydantic import Field

from gametape.core.config_section import AtLeastOne, AtLeastZero, ConfigSection, Natural, Positive


class ClusterConfig(ConfigSection):
    """How a run lies on a Ray cluster (`--ray ADDRESS`); other runs ignore it. None of it changes what is learned. The
    ranks of the learner are `ranks` and `replicas`; what `[rollouts]` bounds, it bounds in each sampler."""

    samplers: AtLeastOne = 1
    """Processes that play rollouts, each with an engine, sandboxes, verifiers and a coach of its own."""
    sampler_cpus: Positive = 1.0
    sampler_gpus: AtLeastZero = 0.0
    """What Ray sets aside for each of them. A share of a GPU lets several use one."""
    rank_cpus: Positive = 1.0
    rank_gpus: Natural = 0
    """What Ray sets aside for each rank of the learner; a rank on a GPU takes a whole one."""
    heartbeat_seconds: Annotated[float, Field(ge=1)] = 20.0
    """A sampler or a rank that shows no sign of life for so long is killed, and begun again."""
    start_seconds: Positive = 600.0
    """How long parts may take to begin. A learner that finds no room for all of its ranks for so long, after some were
    lost, goes on with fewer."""
    restarts: Natural = 5
    """How often a sampler, or the learner, may fail in a row without having got anything done before the run ends."""
    object_store_mb: Natural = 0
    """Shared memory for weights and batches where `--ray local` starts Ray here; 0: Ray's own choice."""
