"""An asynchronous run on sandboxed tasks that is killed again and again: no prompt is lost, and none is learned from
twice, whether its rollouts are short or long."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gametape.core.config import RunConfig
from gametape.tasks.katas.generator import make_katas
from gametape.train import checkpoints
from gametape.train.run_directory import RunDirectory
from tests.engines.tiny import HERMES, tiny_network, write_directory
from tests.patience import HANG, wait_until
from tests.train.ledger import check_ledger

ROOT = Path(__file__).parents[2]
LONG_TASKS = ("double", "greet", "largest")
"""Work with tools, in which a policy that knows nothing goes on for eight turns; a kata is answered, or not, in a few.
Of the directory's tasks the first is held out."""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Weights at random, which can be spoken to: it writes nothing of use."""
    place = tmp_path / "model"
    place.mkdir()
    network = tiny_network(416)
    network.config.max_position_embeddings = 16384
    network.save_pretrained(place)
    return write_directory(place, HERMES)


def begin_run(
    tmp_path: Path, model: Path, episodes: int, katas: int = 2, long_tasks: Sequence[str] = LONG_TASKS
) -> Path:
    tasks = tmp_path / "tasks"
    make_katas(tasks / "katas", katas, seed=0, family="arithmetic")
    for name in long_tasks:
        shutil.copytree(ROOT / "examples" / "tasks" / name, tasks / name)
    rl = {
        "groups": 2,
        "group_size": 2,
        "asynchronous": True,
        "max_staleness": 1,
        "turn_tokens": 8,
        "retire_samples": 10_000,
    }
    config = {
        "arm": "tests.train.counting_arm:CountingArm",
        "model": str(model),
        "tasks": str(tasks),
        "allow_shared": True,
        "episodes": episodes,
        "rl": rl,
        "eval": {"every": "3 updates", "episodes": 3, "slice": 1},
        "checkpoint": {"every": 1},
    }
    directory = RunDirectory(tmp_path / "run")
    directory.create(RunConfig.model_validate(config))
    return directory.root


def start(root: Path, home: Path) -> "subprocess.Popen[str]":
    """Begin the run, or go on with it."""
    return subprocess.Popen(
        [sys.executable, "-m", "gametape.cli.main", "train", "--resume", str(root), "--json"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "GAMETAPE_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors


def finish(root: Path, home: Path) -> dict[str, Any]:
    process = start(root, home)
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return answer


def run_with_kills(tmp_path: Path, model: Path, kills: int, episodes: int) -> tuple[dict[str, Any], Path]:
    root, dice = begin_run(tmp_path, model, episodes), random.Random(7)
    log = root / "metrics.jsonl"
    for _ in range(kills):
        size = log.stat().st_size if log.exists() else 0
        process = start(root, tmp_path / "home")
        deadline = time.monotonic() + HANG
        while process.poll() is None and time.monotonic() < deadline:
            now = log.stat().st_size if log.exists() else 0
            if now > size:
                break
            size = now  # what was logged after the last checkpoint is dropped at the start
            time.sleep(0.05)
        time.sleep(dice.uniform(0, 3))
        kill(process)
    return finish(root, tmp_path / "home"), root


def test_a_kill_loses_no_prompt_and_plays_none_twice(
    tmp_path: Path, model: Path, prepared_home: Callable[[Path], Path]
) -> None:
    home, root = prepared_home(tmp_path / "home"), begin_run(tmp_path, model, 12, 1, ["double"])
    process = start(root, home)
    saved = root / "checkpoints"
    wait_until(lambda: process.poll() is not None or checkpoints.latest(saved), "the first checkpoint")
    kill(process)
    before = checkpoints.latest(saved)
    counts = check_ledger(finish(root, home), root)
    assert counts["learned"] > 0
    assert before is not None
    assert before != checkpoints.latest(saved)


@pytest.mark.slow
def test_two_kills_lose_no_prompt_and_play_none_twice(tmp_path: Path, model: Path) -> None:
    counts = check_ledger(*run_with_kills(tmp_path, model, kills=2, episodes=40))
    assert counts["learned, long"] > 0 < counts["learned"] - counts["learned, long"]


@pytest.mark.slow
def test_twenty_kills_lose_no_prompt_and_play_none_twice(tmp_path: Path, model: Path) -> None:
    counts = check_ledger(*run_with_kills(tmp_path, model, kills=20, episodes=240))
    print(dict(counts))
    assert counts["learned, long"] > 0 < counts["learned"] - counts["learned, long"]
