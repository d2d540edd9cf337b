"""The nodes of the cluster that this process is connected to."""

import ray

from gametape.cluster.placement import Resources


def living_nodes() -> list[Resources]:
    """Ray keeps those that are gone in its list too."""
    return [
        Resources(node["Resources"].get("CPU", 0.0), node["Resources"].get("GPU", 0.0))
        for node in ray.nodes()
        if node["Alive"]
    ]
