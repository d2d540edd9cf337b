"""Whether the parts of a run fit on the nodes of a cluster. Ray itself would wait for room without a word."""

from collections.abc import Sequence
from dataclasses import dataclass

from gametape.core.cluster_config import ClusterConfig
from gametape.core.config import RunConfig
from gametape.core.errors import BadInput
from gametape.core.plural import count_of


@dataclass(frozen=True)
class Resources:
    """Processors and GPUs: of a node, or set aside for one part."""

    cpus: float
    gpus: float = 0.0

    def holds(self, part: "Resources") -> bool:
        return self.cpus + 1e-6 >= part.cpus and self.gpus + 1e-6 >= part.gpus

    def without(self, part: "Resources") -> "Resources":
        return Resources(self.cpus - part.cpus, self.gpus - part.gpus)

    def __str__(self) -> str:
        cpus = f"{self.cpus:g} CPU"
        return f"{cpus} and {self.gpus:g} GPU" if self.gpus else cpus


def rank_resources(config: ClusterConfig) -> Resources:
    return Resources(config.rank_cpus, config.rank_gpus)


def sampler_resources(config: ClusterConfig) -> Resources:
    return Resources(config.sampler_cpus, config.sampler_gpus)


def wanted_resources(config: RunConfig) -> list[Resources]:
    """Of each part, the learner's ranks first."""
    ranks = [rank_resources(config.cluster)] * config.ranks
    return [*ranks, *[sampler_resources(config.cluster)] * config.cluster.samplers]


def parts_that_fit(nodes: Sequence[Resources], parts: Sequence[Resources]) -> int:
    """How many parts find room, the largest first, each on the node where the least is left over."""
    free, placed = list(nodes), 0
    for part in sorted(parts, key=lambda one: (one.gpus, one.cpus), reverse=True):
        fitting = [at for at, node in enumerate(free) if node.holds(part)]
        if fitting:
            best = min(fitting, key=lambda at: (free[at].gpus - part.gpus, free[at].cpus - part.cpus))
            free[best] = free[best].without(part)
            placed += 1
    return placed


def require_room(nodes: Sequence[Resources], config: RunConfig) -> None:
    """Refuse a run whose parts would wait for ever."""
    parts, cluster = wanted_resources(config), config.cluster
    if parts_that_fit(nodes, parts) == len(parts):
        return
    there = "; ".join(str(node) for node in nodes) or "no node"
    raise BadInput(
        f"cluster: {count_of(config.ranks, 'rank')} with {rank_resources(cluster)} each and "
        f"{count_of(cluster.samplers, 'sampler')} with {sampler_resources(cluster)} each do not fit on "
        f"{count_of(len(nodes), 'node')} ({there}); lower ranks, cluster.samplers or what each takes, or add a node"
    )


def fewer_ranks(ranks: int, replicas: int, room: int) -> tuple[int, int]:
    """The most ranks, and copies of the weights among them, that a learner can go on with where `room` of its `ranks`
    find a place: whole copies if one fits, else one copy over what there is."""
    shards = ranks // replicas
    copies = min(replicas, room // shards)
    return (copies * shards, copies) if copies else (max(1, room), 1)
