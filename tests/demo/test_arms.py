"""The two training runs of the demo: equal settings, errors, and (slow) their end with the demo."""

import subprocess
import sys
from pathlib import Path

import pytest

from gametape.core.config import TinyConfig
from gametape.core.errors import BadInput
from gametape.demo.arms import ArmFailed, train_arms
from gametape.demo.state import DemoState
from gametape.studio.sections.demo import DEMO_ARMS
from gametape.train.config_file import read_config
from gametape.train.policy import create_tiny_policy
from gametape.train.run_directory import RunDirectory
from tests.patience import wait_until


@pytest.mark.parametrize("quick", [True, False])
def test_both_arms_have_the_same_weights_tasks_and_budget(tmp_path: Path, quick: bool) -> None:
    state = DemoState.new(tmp_path / "demo", tmp_path, 5, quick)
    rlvr, ttf = (read_config(state.config(arm), state.changes) for arm in DEMO_ARMS)
    assert (rlvr.arm, ttf.arm) == DEMO_ARMS
    for name in ("seed", "model", "tasks", "tiny", "warm", "eval", "flops", "episodes"):
        assert getattr(rlvr, name) == getattr(ttf, name)
    assert (rlvr.seed, rlvr.model) == (5, "tiny")
    assert rlvr.flops


@pytest.mark.slow
def test_a_run_that_cannot_begin_is_said_in_its_own_words(tmp_path: Path) -> None:
    state = DemoState.new(tmp_path / "demo", tmp_path, 0, quick=True)
    with pytest.raises(ArmFailed, match="warm/start: no such directory") as failed:
        train_arms(state)
    assert failed.value.exit_code == 2


def _is_free(run: RunDirectory) -> bool:
    try:
        with run.lock():
            return run.metrics.exists()
    except BadInput:
        return False


_ARMS_OF = """
import sys
from pathlib import Path
from gametape.demo.arms import train_arms
from gametape.demo.state import DemoState
train_arms(DemoState.resume(Path(sys.argv[1]), Path(sys.argv[1])))
"""


@pytest.mark.slow
def test_no_run_outlives_a_demo_that_is_killed(tmp_path: Path) -> None:
    state = DemoState.new(tmp_path / "demo", tmp_path, 3, quick=True)
    create_tiny_policy(state.start, TinyConfig(layers=1, width=32, heads=2, window=256), seed=3)
    runs = [RunDirectory(state.out / arm) for arm in DEMO_ARMS]
    with subprocess.Popen([sys.executable, "-c", _ARMS_OF, str(state.out)]) as begun:
        wait_until(lambda: all(run.metrics.exists() for run in runs), "the start of both runs")
        begun.kill()
    wait_until(lambda: all(map(_is_free, runs)), "the end of both runs")
