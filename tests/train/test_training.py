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
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from gametape.core.config import RunConfig
from gametape.core.errors import BadInput, GametapeError
from gametape.engines.model_names import find_weights, resolve_model
from gametape.engines.token_conversation import TokenModel
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
    "rl": {"groups": 2, "group_size": 4, "reproducible": True},
    "eval": {"every": 32, "episodes": 8},
    "checkpoint": {"every": 2},
}
"""Just enough of a warm start for some rollouts to pass and some to fail."""
CONCURRENT = SMALL["rl"] | {"reproducible": False}
ASYNCHRONOUS = CONCURRENT | {"asynchronous": True, "max_staleness": 2}


CLOCK = ("seconds", "tokens_per_second", "time", "eta_seconds")


def run_training(root: Path, config: dict[str, Any] | None = None) -> dict[str, Any]:
    directory = RunDirectory(root)
    with directory.lock():
        if config:
            directory.create(RunConfig.model_validate(config))
        return asyncio.run(train(directory.resume_config(), directory, root, RunCallbacks()))


def curve(root: Path) -> list[dict[str, Any]]:
    """Everything in the log but the clock."""
    return [
        {key: value for key, value in line.items() if key not in CLOCK} for line in read_metrics(root / "metrics.jsonl")
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
        assert {name for name in line["retired"] if line["pass_rates"][name] < 0.5} == set()
        if line["mismatch_max"] is not None:
            assert line["mismatch_max"] < 1e-3
    assert next(line["episodes_so_far"] for line in lines if line["kind"] == "eval") == 0


def _before(updates: list[dict[str, Any]], line: dict[str, Any]) -> int:
    at = updates.index(line)
    return int(updates[at - 1]["episodes"]) if at else 0


def test_a_checkpoint_is_a_model_for_plain_transformers(finished_run: Path) -> None:
    checkpoint = checkpoints.latest(finished_run / "checkpoints")
    assert checkpoint is not None
    network = AutoModelForCausalLM.from_pretrained(checkpoint / "model")
    ids = AutoTokenizer.from_pretrained(checkpoint / "model")("put blue into file f3", return_tensors="pt").input_ids
    assert torch.isfinite(network(ids).logits).all()
    assert torch.equal(
        network.model.embed_tokens.weight,
        load_file(checkpoint / "model" / "model.safetensors")["model.embed_tokens.weight"],
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
    assert all(torch.isfinite(tensor).all() for tensor in load_file(saved / "model" / "model.safetensors").values())
    assert curve(root)[-1]["kind"] == "halt"


@pytest.mark.parametrize("arm", ["warm", "sft", "rejection", "rlvr_ttf"])
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
    (last / "model" / "model.safetensors").unlink()
    run_training(root)
    assert curve(root) == curve(finished_run)


def test_a_checkpoint_is_a_model_for_transformers_and_for_the_engine(finished_run: Path) -> None:
    weights = find_weights(finished_run)
    assert {path.suffix for path in weights.iterdir()} <= {".json", ".jinja", ".txt", ".model", ".safetensors"}
    assert [path.name for path in weights.glob("*.safetensors")] == ["model.safetensors"]
    plain = AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32).eval()
    saved = load_file(weights / "model.safetensors")
    assert all(torch.equal(plain.state_dict()[name], tensor) for name, tensor in saved.items())
    ids = list(range(3, 40))
    with torch.no_grad():
        logs_TV = plain(torch.tensor([ids])).logits[0].log_softmax(-1)
    expected = [float(logs_TV[at - 1, ids[at]]) for at in range(1, len(ids))]
    model = resolve_model(str(finished_run), finished_run)
    assert isinstance(model, TokenModel)

    async def score() -> list[float] | None:
        try:
            return await model.engine.score(ids, 1)
        finally:
            await model.close()

    assert asyncio.run(score()) == pytest.approx(expected, abs=1e-3)


def _learned(root: Path) -> list[dict[str, Any]]:
    return [line for line in read_metrics(root / "metrics.jsonl") if line["kind"] == "update" and line["ratio"]]


def test_the_log_tells_sampler_and_learner_apart(finished_run: Path) -> None:
    """In float32 and with the same weights they hardly differ, and one step for each update has ratios of 1."""
    for line in _learned(finished_run):
        assert line["steps"] == 1
        assert line["importance"]["mean"] == pytest.approx(1.0, abs=1e-3)
        assert line["importance"]["truncated"] == 0.0
        assert (line["ratio"]["least"], line["ratio"]["most"], line["ratio"]["clipped"]) == (1.0, 1.0, 0.0)


def test_an_update_in_several_steps_has_ratios_other_than_1(finished_run: Path, tmp_path: Path) -> None:
    root = start_run(finished_run, tmp_path / "steps", rl=SMALL["rl"] | {"minibatches": 2, "epochs": 2}, episodes=32)
    run_training(root)
    learned = _learned(root)
    assert learned
    assert all(1 < line["steps"] <= 4 for line in learned)
    assert any(line["ratio"]["least"] < 1.0 < line["ratio"]["most"] for line in learned)
    assert all(line["mismatch"] < 1e-3 for line in learned)


def test_two_processes_never_train_in_one_place(finished_run: Path) -> None:
    directory = RunDirectory(finished_run)
    with directory.lock(), pytest.raises(BadInput, match="another process"), directory.lock():
        pass


def test_a_run_that_is_there_is_not_written_over(finished_run: Path) -> None:
    with pytest.raises(BadInput, match="there is a run here already"):
        RunDirectory(finished_run).create(RunDirectory(finished_run).resume_config())


@pytest.mark.parametrize("arm", ["sft", "rlvr_ttf"])
def test_a_run_that_does_not_wait_learns_evaluates_and_goes_on(finished_run: Path, tmp_path: Path, arm: str) -> None:
    """In slices of three, so that the first evaluation goes on while the policy learns; the last is of one version."""
    changes = {"arm": arm, "rl": CONCURRENT, "eval": {"every": "6 updates", "episodes": 8, "slice": 3}}
    root = start_run(finished_run, tmp_path / arm, **changes)
    answer = run_training(root)
    lines = curve(root)
    scores = [line for line in lines if line["kind"] == "eval"]
    updates = [line for line in lines if line["kind"] == "update"]
    assert updates[0]["step"] <= scores[0]["step"]
    assert scores[0]["versions"][0] == 0
    assert scores[-1]["versions"] == [answer["updates"], answer["updates"]]
    assert [score["episodes"] for score in scores] == [8] * len(scores)
    assert answer["tokens"]["backpropagated"] > 0
    assert not [line for line in lines if line["kind"] == "alarm" and line["name"] == "mismatch"]
    learned = [number for line in updates for number in line["requests"]]
    assert sorted(learned) == list(range(len(learned)))
    assert answer["time"]["learn"] > 0 < answer["time"]["decode"]
    assert list(answer["time"]) == ["decode", "tools", "prepare", "verify", "coach", "learn", "idle"]
    assert answer["device"] == "cpu"
    extend_run(root, 104)
    assert run_training(root)["episodes"] >= 104


def test_a_run_that_ends_between_two_slices_scores_what_was_played(finished_run: Path, tmp_path: Path) -> None:
    """One rollout at a time: when the only update is over the first slice was played, and the second not ordered."""
    changes = {"rl": CONCURRENT, "rollouts": {"in_flight": 1}, "eval": {"every": 0, "episodes": 8, "slice": 5}}
    root = start_run(finished_run, tmp_path / "between", episodes=1, **changes)
    answer = run_training(root)
    scores = [line for line in curve(root) if line["kind"] == "eval"]
    assert [score["episodes"] for score in scores] == [5, 8] if answer["updates"] else [5]


def test_what_the_second_process_refuses_is_told_as_in_the_first(finished_run: Path, tmp_path: Path) -> None:
    """A tiny policy reads no judge's line; that is bad input, and going on would not help."""
    root = start_run(finished_run, tmp_path / "refused", rl=ASYNCHRONOUS, arm="rlvr_ttf", ttf={"judge": "policy"})
    with pytest.raises(GametapeError, match=r"^ttf\.judge: a tiny policy knows") as refused:
        run_training(root)
    assert refused.value.exit_code == 2


def test_a_second_process_samples_while_the_first_learns(finished_run: Path, tmp_path: Path) -> None:
    """Every rollout that was learned from was young enough, and what was under way at the end is on record."""
    root = start_run(finished_run, tmp_path / "async", rl=ASYNCHRONOUS)
    answer = run_training(root)
    assert answer["stopped_by"] == "episodes"
    ages = {int(age): count for age, count in answer["staleness"].items()}
    assert max(ages) <= 2
    assert sum(ages.values()) + answer["dropped"] == answer["episodes"]
    saved = checkpoints.latest(root / "checkpoints")
    assert saved is not None
    progress = checkpoints.load_state(saved)["progress"]
    assert progress["ordered"] or progress["waiting"]
    extend_run(root, 128)
    assert run_training(root)["episodes"] >= 128
