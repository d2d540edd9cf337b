"""Two nodes of a cluster as two networks on this machine, each with an address of its own: one dies in the middle."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.faulty_run import FaultyRun
from tests.ray_cluster import NODES, PORT, kill_node, processes_of, require_ray, start_node, two_networks
from tests.train.ledger import check_ledger

pytestmark = pytest.mark.slow


@pytest.fixture
def nodes() -> Iterator[tuple[str, str]]:
    """The first is the head, and has room for everything."""
    require_ray()
    with two_networks() as (first, second):
        try:
            start_node(first, NODES[0], cpus=4)
            start_node(second, NODES[1], cpus=2, head=NODES[0])
            yield first, second
        finally:
            kill_node(first)
            kill_node(second)


def test_a_node_that_dies_loses_no_prompt_and_nothing_is_played_twice(nodes: tuple[str, str], tmp_path: Path) -> None:
    first, second = nodes
    with FaultyRun(tmp_path / "run", first, seed=0, address=f"{NODES[0]}:{PORT}", own_disk=False) as run:
        run.get_on(2)
        there = set(processes_of(second))
        parts = [event for event in run.events if {event.get("pid"), *event.get("pids", ())} & there]
        assert parts, "no part was on the second node"
        known = len(run.events)
        kill_node(second)
        run.get_on(4)
        lost = {event["part"] for event in run.events[known:] if event["event"] == "lost"}
        assert lost >= {event["part"] for event in parts}
        counts = check_ledger(run.finish(), run.root)
    assert counts["learned"] > 8
