"""Whole runs of a tiny policy: they learn from what they should, and an interruption changes nothing."""

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from gametape.core.config import RunConfig
from gametape.core.errors import BadInput
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.suite import make_suite
from gametape.train import checkpoints
from gametape.train.alarms import BehaviourMonitor, TrainingAlarm
from gametape.train.algorithms.base import MicroBatch
from gametape.train.algorithms.rlvr import Rlvr
from gametape.train.rollouts import TurnText
from gametape.train.run_directory import RunDirectory, read_metrics
from gametape.train.training import RunCallbacks, train
from tests.patience import HANG

SMALL: dict[str, Any] = {
    "arm": "rlvr",
    "episodes": 96,
    "tiny": {"layers": 2, "width": 64, "heads": 2, "window": 256},
    "warm": {"episodes": 1600, "batch": 16, "learning_rate": 0.008, "hint_share": 0.0},
    "rl": {"groups": 2, "group_size": 4},
    "eval": {"every": 32, "episodes": 8},
    "checkpoint": {"every": 2},
}
"""Just enough of a warm start for some rollouts to pass and some to fail."""


def run_training(root: Path, config: dict[str, Any] | None = None) -> dict[str, Any]:
    directory = RunDirectory(root)
    with directory.lock():
        if config:
            directory.create(RunConfig.model_validate(config))
        return asyncio.run(train(directory.resume_config(), directory, root, RunCallbacks()))


def curve(root: Path) -> list[dict[str, Any]]:
    """Everything in the log but the clock."""
    return [
        {key: value for key, value in line.items() if key != "seconds"} for line in read_metrics(root / "metrics.jsonl")
    ]


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run from its beginning to its end, without an interruption."""
    torch.set_num_threads(1)
    directory = tmp_path_factory.mktemp("runs")
    spec = WorldSpec(family="files", horizon=4, load_bearing=0)
    make_suite(directory / "suite", spec, 1)
    run_training(directory / "whole", SMALL | {"tasks": str(directory / "suite")})
    return directory / "whole"


def start_run(finished_run: Path, root: Path, **changes: Any) -> Path:
    """Another run from the same weights, to save the warm start."""
    directory = RunDirectory(root)
    directory.create(RunConfig.model_validate(SMALL | {"tasks": str(finished_run.parent / "suite")} | changes))
    shutil.copytree(finished_run / "start", directory.start)
    return root


def test_the_log_tells_the_whole_story(finished_run: Path) -> None:
    lines = curve(finished_run)
    updates = [line for line in lines if line["kind"] == "update"]
    assert updates[-1]["episodes"] >= 96
    assert any(line["loss"] is not None for line in updates)
    for line in updates:
        assert sum(line["groups"].values()) * 4 == line["episodes"] - _before(updates, line)
        if line["mismatch_max"] is not None:
            assert line["mismatch_max"] < 1e-3
    assert next(line["episodes_so_far"] for line in lines if line["kind"] == "eval") == 0


def _before(updates: list[dict[str, Any]], line: dict[str, Any]) -> int:
    at = updates.index(line)
    return int(updates[at - 1]["episodes"]) if at else 0


def test_a_checkpoint_is_a_model_for_plain_transformers(finished_run: Path) -> None:
    checkpoint = checkpoints.latest(finished_run / "checkpoints")
    assert checkpoint is not None
    network = AutoModelForCausalLM.from_pretrained(checkpoint)
    ids = AutoTokenizer.from_pretrained(checkpoint)("put blue into file f3", return_tensors="pt").input_ids
    assert torch.isfinite(network(ids).logits).all()
    assert torch.equal(
        network.model.embed_tokens.weight, checkpoints.load(checkpoint).weights["model.embed_tokens.weight"]
    )


def test_a_second_run_with_the_same_seed_is_the_same_to_the_bit(finished_run: Path, tmp_path: Path) -> None:
    again = start_run(finished_run, tmp_path / "again")
    run_training(again)
    assert curve(again) == curve(finished_run)


def test_kill_at_random_instants_changes_nothing(finished_run: Path, tmp_path: Path) -> None:
    """Real processes and SIGKILL; three here, twenty in the slow suite."""
    _run_with_kills(finished_run, start_run(finished_run, tmp_path / "killed"), kills=3)


@pytest.mark.slow
def test_twenty_kills_at_random_instants_change_nothing(finished_run: Path, tmp_path: Path) -> None:
    _run_with_kills(finished_run, start_run(finished_run, tmp_path / "killed"), kills=20)


def _run_with_kills(finished_run: Path, root: Path, kills: int) -> None:
    dice = random.Random(5)
    command = [sys.executable, "-m", "gametape.cli.main", "train", "--resume", str(root), "--json"]
    settings = {**os.environ, "OMP_NUM_THREADS": "1"}
    for _ in range(kills):
        process = subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        size = (root / "metrics.jsonl").stat().st_size if (root / "metrics.jsonl").exists() else 0
        deadline = time.monotonic() + HANG
        while process.poll() is None and time.monotonic() < deadline:
            grown = (root / "metrics.jsonl").exists() and (root / "metrics.jsonl").stat().st_size > size
            if grown:
                break
            time.sleep(0.05)
        time.sleep(dice.uniform(0, 0.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["stopped_by"] == "episodes"
    assert curve(root) == curve(finished_run)
    assert (root / "behaviour.jsonl").read_bytes() == (finished_run / "behaviour.jsonl").read_bytes() != b""


def test_the_watch_ends_a_run_before_it_learns_more_where_it_may(
    finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Alarmed(BehaviourMonitor):
        def observe(self, step: int, rollouts: Sequence[Sequence[TurnText]]) -> list[TrainingAlarm]:
            self.rung = "pause"
            return super().observe(step, rollouts)

    monkeypatch.setattr("gametape.train.training.BehaviourMonitor", Alarmed)
    stopped = run_training(start_run(finished_run, tmp_path / "stopped", watch={"stop": True}))
    assert (stopped["stopped_by"], stopped["steps"]) == ("watch", 0)


def test_a_loss_that_is_no_number_stops_it_and_keeps_the_last_good_state(
    finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = start_run(finished_run, tmp_path / "nan")
    real = Rlvr.loss

    def broken(self: Rlvr, micro: MicroBatch) -> torch.Tensor:
        return real(self, micro) * (float("nan") if len(curve(root)) > 3 else 1.0)

    monkeypatch.setattr(Rlvr, "loss", broken)
    answer = run_training(root)
    assert answer["stopped_by"].startswith("nan: update")
    assert "the draws are" in answer["stopped_by"]
    saved = checkpoints.latest(root / "checkpoints")
    assert saved is not None
    assert all(torch.isfinite(tensor).all() for tensor in checkpoints.load(saved).weights.values())
    assert curve(root)[-1]["kind"] == "halt"


@pytest.mark.parametrize("arm", ["sft", "rejection", "rlvr_ttf"])
def test_the_other_arms_run(finished_run: Path, tmp_path: Path, arm: str) -> None:
    answer = run_training(start_run(finished_run, tmp_path / arm, arm=arm))
    assert (answer["arm"], answer["stopped_by"]) == (arm, "episodes")
    assert not [line for line in curve(tmp_path / arm) if line["kind"] == "alarm" and line["name"] == "mismatch"]
    assert answer["tokens"]["backpropagated"] > 0


def extend_run(root: Path, episodes: int) -> None:
    path = root / "config.toml"
    path.write_text(path.read_text().replace("episodes = 96", f"episodes = {episodes}"))


def test_a_run_goes_on_as_it_was_begun_or_not_at_all(finished_run: Path, tmp_path: Path) -> None:
    root = tmp_path / "edited"
    shutil.copytree(finished_run, root)
    extend_run(root, 104)
    assert run_training(root)["episodes"] >= 104
    path = root / "config.toml"
    path.write_text(path.read_text().replace("seed = 0", "seed = 1"))
    with pytest.raises(BadInput, match="seed is not what the run was begun with"):
        run_training(root)
    shutil.rmtree(root / "checkpoints")
    with pytest.raises(BadInput, match="its checkpoints are gone"):
        run_training(root)


def test_a_checkpoint_with_a_file_missing_is_passed_over(finished_run: Path, tmp_path: Path) -> None:
    root = tmp_path / "damaged"
    shutil.copytree(finished_run, root)
    last = checkpoints.latest(root / "checkpoints")
    assert last is not None
    (last / "model.safetensors").unlink()
    run_training(root)
    assert curve(root) == curve(finished_run)


def test_two_processes_never_train_in_one_place(finished_run: Path) -> None:
    directory = RunDirectory(finished_run)
    with directory.lock(), pytest.raises(BadInput, match="another process"), directory.lock():
        pass


def test_a_run_that_is_there_is_not_written_over(finished_run: Path) -> None:
    with pytest.raises(BadInput, match="there is a run here already"):
        RunDirectory(finished_run).create(RunDirectory(finished_run).resume_config())


def test_a_second_process_samples_while_the_first_learns(finished_run: Path, tmp_path: Path) -> None:
    """Every rollout that was learned from was young enough, and what was under way at the end is on record."""
    root = start_run(finished_run, tmp_path / "async", rl=SMALL["rl"] | {"asynchronous": True, "max_staleness": 2})
    answer = run_training(root)
    assert answer["stopped_by"] == "episodes"
    ages = {int(age): count for age, count in answer["staleness"].items()}
    assert max(ages) <= 2
    assert sum(ages.values()) + answer["dropped"] == answer["episodes"]
    saved = checkpoints.latest(root / "checkpoints")
    assert saved is not None
    progress = checkpoints.load(saved).state["progress"]
    assert progress["ordered"] or progress["waiting"]
    extend_run(root, 128)
    assert run_training(root)["episodes"] >= 128
