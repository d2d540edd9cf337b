"""Runs on a cluster in which parts are killed and stopped: every prompt is learned from once, or counted as dropped."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.faulty_run import FAULTS, HEARTBEAT, FaultKind, FaultyRun
from tests.ray_cluster import own_network, require_ray
from tests.train.ledger import check_ledger

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def network() -> Iterator[str]:
    require_ray()
    with own_network() as name:
        yield name


@pytest.mark.parametrize("part", ["sampler", "rank", "driver", "disk"])
def test_what_dies_or_hangs_loses_no_prompt_and_plays_none_twice(network: str, part: str, tmp_path: Path) -> None:
    kinds: list[FaultKind] = [kind for kind in FAULTS if kind.startswith(part)]
    with FaultyRun(tmp_path / "run", network, seed=len(part)) as run:
        recoveries = [run.suffer(kind) for kind in kinds]
        counts = check_ledger(run.finish(), run.root)
    assert counts["learned"] > 0
    for recovery in recoveries:
        print(recovery)
        if recovery.kind.endswith("stopped"):
            assert recovery.noticed > HEARTBEAT / 2
