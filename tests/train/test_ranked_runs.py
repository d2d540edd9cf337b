"""Runs whose learner is several processes, through the command: they learn what one process does, and whatever is
killed leaves nothing behind that would be in the way."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from gametape.core.config import RunConfig
from gametape.train import checkpoints
from gametape.train.run_directory import RunDirectory, read_metrics
from tests.patience import wait_until

TINY: dict[str, Any] = {
    "arm": "rlvr_ttf",
    "tasks": "worlds:easy",
    "episodes": 32,
    "tiny": {"layers": 2, "width": 32, "heads": 2, "window": 256},
    "warm": {"episodes": 160, "batch": 16, "learning_rate": 0.008, "hint_share": 0.0},
    "optim": {"micro_batch_tokens": 400},
    "rl": {"groups": 2, "group_size": 4, "reproducible": True},
    "ttf": {"teacher": "ema"},
    "eval": {"every": 0, "episodes": 2},
    "checkpoint": {"every": 1, "keep": 3},
}
BOUND = 1e-4


def begin(root: Path, like: Path | None = None, **changes: Any) -> Path:
    """A run, from the weights that another one began with if there is one."""
    directory = RunDirectory(root)
    directory.create(RunConfig.model_validate(TINY | changes))
    if like:
        shutil.copytree(like / "start", directory.start)
    return root


def start(root: Path, *settings: str) -> "subprocess.Popen[str]":
    changes = [part for setting in settings for part in ("--set", setting)]
    return subprocess.Popen(
        [sys.executable, "-m", "gametape.cli.main", "train", "--resume", str(root), "--json", *changes],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(root: Path, *settings: str) -> dict[str, Any]:
    process = start(root, *settings)
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return answer


def updates(root: Path) -> list[dict[str, Any]]:
    return [line for line in read_metrics(root / "metrics.jsonl") if line["kind"] == "update"]


def assert_same_curve(root: Path, other: Path) -> None:
    assert len(updates(root)) == len(updates(other)) > 1
    for line, expected in zip(updates(root), updates(other), strict=True):
        for name in ("loss", "gradient", "entropy", "ttf"):
            assert line[name] == pytest.approx(expected[name], rel=BOUND), (line["step"], name)
        for name in ("episodes", "requests", "targets", "tokens"):
            assert line.get(name) == expected.get(name), (line["step"], name)


def ranks_of(process: "subprocess.Popen[str]") -> list[int]:
    """The processes of its learner, in the order in which they were started."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                line = (path / "cmdline").read_bytes()
            except OSError:
                continue
            if parent == process.pid and b"spawn_main" in line:
                found.append(int(path.name))
    return sorted(found)


def is_there(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def learning(process: "subprocess.Popen[str]", root: Path) -> list[int]:
    """The ranks, once some updates are on disk."""
    saved = root / "checkpoints"
    wait_until(
        lambda: process.poll() is not None or int((checkpoints.latest(saved) or Path("0")).name) > 1, "two updates"
    )
    assert process.poll() is None, process.communicate()[1]
    return ranks_of(process)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run by one process."""
    root = begin(tmp_path_factory.mktemp("runs") / "alone")
    finish(root)
    return root


def test_two_ranks_learn_what_one_does(alone: Path, tmp_path: Path) -> None:
    root = begin(tmp_path / "two", alone)
    answer = finish(root, "ranks=2")
    assert_same_curve(root, alone)
    assert {line["targets"] for line in updates(root)} != {0}
    last = checkpoints.latest(root / "checkpoints")
    assert answer["weights"] == str(last / "model") if last else False
    assert sorted(path.name for path in (Path(answer["weights"]).parent / "shards").glob("*.distcp")) == [
        "__0_0.distcp",
        "__1_0.distcp",
    ]
    assert not list(root.glob("rank-*.log"))


@pytest.mark.slow
def test_two_ranks_learn_the_adapters_that_one_does(alone: Path, tmp_path: Path) -> None:
    lora = {"rank": 4, "alpha": 8.0}
    roots = [begin(tmp_path / name, alone, lora=lora) for name in ("one", "two")]
    weights = [Path(finish(root, f"ranks={ranks}")["weights"]) for ranks, root in enumerate(roots, start=1)]
    assert_same_curve(*roots)
    one, two = (load_file(path.parent / "adapter" / "adapter_model.safetensors") for path in weights)
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, atol=1e-4, rtol=1e-3)
    models = [load_file(path / "model.safetensors") for path in weights]
    begun = load_file(alone / "start" / "model.safetensors")
    assert any(not torch.equal(models[1][name], tensor) for name, tensor in begun.items())


@pytest.mark.slow
def test_ranks_learn_beside_a_process_that_samples(alone: Path, tmp_path: Path) -> None:
    root = begin(tmp_path / "beside", alone, rl={"groups": 2, "group_size": 4, "asynchronous": True})
    answer = finish(root, "ranks=2")
    assert answer["stopped_by"] == "episodes"
    assert [line["version"] for line in updates(root)][-1] > 1
    assert all(line["loss"] is not None for line in updates(root))
    begun, end = (load_file(path / "model.safetensors") for path in (root / "start", Path(answer["weights"])))
    assert any(not torch.equal(end[name], tensor) for name, tensor in begun.items())


@pytest.fixture(scope="module")
def long_alone(alone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = begin(tmp_path_factory.mktemp("runs") / "long", alone, episodes=240)
    finish(root)
    return root


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_is_killed_ends_the_run_and_one_process_goes_on(
    alone: Path, long_alone: Path, tmp_path: Path, victim: int
) -> None:
    root = begin(tmp_path / "killed", alone, episodes=240)
    process = start(root, "ranks=2")
    ranks = learning(process, root)
    assert len(ranks) == 2
    os.kill(ranks[victim], signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode == 3, errors
    expected = f"gametape: rank {victim} of 2 of the learner was killed by signal 9; --resume goes on"
    assert errors.splitlines()[-1].startswith(expected)
    assert not any(map(is_there, ranks))
    finish(root, "ranks=1")
    assert_same_curve(root, long_alone)


@pytest.mark.slow
def test_nothing_is_left_when_the_run_is_killed_and_more_ranks_go_on(
    alone: Path, long_alone: Path, tmp_path: Path
) -> None:
    root = begin(tmp_path / "killed", alone, episodes=240)
    process = start(root)
    learning(process, root)
    process.kill()
    process.communicate()
    process = start(root, "ranks=2")
    step = int((checkpoints.latest(root / "checkpoints") or Path("0")).name)
    wait_until(lambda: process.poll() is not None or int(str(checkpoints.latest(root / "checkpoints"))[-8:]) > step + 1)
    ranks = ranks_of(process)
    assert len(ranks) == 2
    process.kill()
    process.communicate()
    wait_until(lambda: not any(map(is_there, ranks)), "the end of the ranks")
    finish(root, "ranks=4", "replicas=2")
    assert_same_curve(root, long_alone)


@pytest.mark.slow
def test_ctrl_c_leaves_no_process(alone: Path, tmp_path: Path) -> None:
    root = begin(tmp_path / "stopped", alone, episodes=4000)
    process = start(root, "ranks=2")
    ranks = learning(process, root)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert errors.splitlines()[-1].startswith("gametape: interrupted; go on with: ")
    assert f"train --resume {root}" in errors.splitlines()[-1]
    assert not any(map(is_there, ranks))


@pytest.mark.slow
def test_a_rank_that_hangs_ends_the_run(alone: Path, tmp_path: Path) -> None:
    root = begin(tmp_path / "hanging", alone, episodes=4000)
    process = start(root, "ranks=2")
    ranks = learning(process, root)
    os.kill(ranks[1], signal.SIGSTOP)
    _, errors = process.communicate()
    assert process.returncode == 3, errors
    assert "rank 1 of 2 of the learner has shown no sign of life for 60 seconds; --resume" in errors.splitlines()[-1]
    assert not any(map(is_there, ranks))


def test_what_cannot_be_is_refused_in_one_line(alone: Path) -> None:
    process = start(alone, "ranks=3", "replicas=2")
    _, errors = process.communicate()
    assert process.returncode == 2
    assert errors.splitlines()[-1].endswith("replicas: a number that divides ranks, which is 3, not 2"), errors
