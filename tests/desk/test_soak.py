"""Two days of the soak (`benchmarks/soak.py`): kills, full disks, set clocks and an outage, and nothing is missing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMALL = "--days 2 --threads 4 --heartbeats 12 --says 2 --goals 1 --clock-changes 2 --outages 1 --full-disks 2"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_everything_is_accounted_for(seed: int) -> None:
    command = [sys.executable, ROOT / "benchmarks/soak.py", "--seed", str(seed), "--kills", "8", *SMALL.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, answer["broken"]) == (0, []), done.stderr[-2000:]
    assert answer["lives"]["killed"] >= 1
    assert answer["counts"]["ticks"] >= 20
