"""A learner that outlives its ranks has the weights of one that nothing happened to."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ray_cluster import ROOT, environment, own_network, require_ray

pytestmark = pytest.mark.slow


def test_ranks_that_are_killed_cost_no_update_and_no_checkpoint(tmp_path: Path) -> None:
    require_ray()
    with own_network() as network:
        command = ["ip", "netns", "exec", network, sys.executable, "-m", "tests.cluster.lasting_learner"]
        done = subprocess.run(
            [*command, str(tmp_path / "run")], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["lost"] >= 2
    assert answer["moved"] > 1e-3
    assert max(answer["apart"].values()) < 1e-4, answer
