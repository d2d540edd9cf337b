"""The directory of a run: what is refused leaves nothing, what was begun stays, and a longer run is written down."""

import json
from pathlib import Path
from typing import Any

import pytest

from gametape.core.config import RunConfig
from gametape.core.errors import BadInput
from gametape.train.run_directory import RunDirectory

CONFIG = RunConfig(arm="rlvr", tasks="worlds:easy")


def _fail(directory: RunDirectory, error: BaseException, config: RunConfig = CONFIG, made: str = "") -> None:
    with pytest.raises(type(error)):
        _begin_and_fail(directory, error, config, made)


def _begin_and_fail(directory: RunDirectory, error: BaseException, config: RunConfig, made: str) -> None:
    with directory.begin(config):
        assert directory.config.exists()
        if made == "checkpoint":
            _write_checkpoint(directory, 1, 16)
        elif made:
            (directory.root / made).parent.mkdir(parents=True, exist_ok=True)
            (directory.root / made).write_text("{}\n")
        raise error


@pytest.mark.parametrize("error", [BadInput("no"), OSError("no"), RuntimeError("no")])
def test_a_run_that_fails_before_any_work_leaves_nothing(tmp_path: Path, error: Exception) -> None:
    _fail(RunDirectory(tmp_path / "runs" / "deep" / "x"), error)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    _fail(RunDirectory(tmp_path / "x"), BadInput("no"))
    assert list(tmp_path.iterdir()) == [tmp_path / "x"]
    assert list((tmp_path / "x").iterdir()) == []


def test_an_earlier_configuration_comes_back(tmp_path: Path) -> None:
    """It is what an interrupted run left, which can still be resumed."""
    (tmp_path / "config.toml").write_text("# mine\n")
    _fail(RunDirectory(tmp_path), BadInput("no"))
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]
    assert (tmp_path / "config.toml").read_text() == "# mine\n"


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(143)])
def test_an_interrupted_run_can_be_resumed(tmp_path: Path, stop: BaseException) -> None:
    directory = RunDirectory(tmp_path / "x")
    _fail(directory, stop)
    assert directory.resume_config() == CONFIG


@pytest.mark.parametrize("made", ["metrics.jsonl", "checkpoint", "start/model"])
def test_what_took_time_stays_after_a_failure(tmp_path: Path, made: str) -> None:
    directory = RunDirectory(tmp_path / "x")
    _fail(directory, BadInput("no"), made=made)
    assert directory.config.exists()


def test_a_copy_of_weights_took_no_time(tmp_path: Path) -> None:
    _fail(RunDirectory(tmp_path / "x"), BadInput("no"), CONFIG.model_copy(update={"model": "weights"}), "start/model")
    assert list(tmp_path.iterdir()) == []


def test_another_process_is_left_alone(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "x")
    with directory.lock():
        directory.create(CONFIG)
        with pytest.raises(BadInput, match="another process is training here"), directory.begin(CONFIG):
            pass
        assert directory.resume_config() == CONFIG


def _write_checkpoint(directory: RunDirectory, step: int, episodes: int) -> None:
    place = directory.checkpoints / f"{step:08}"
    place.mkdir(parents=True)
    (place / "state.json").write_text(json.dumps({"progress": {"step": step, "episodes": episodes}}))
    for name in ("model.safetensors", "optimizer.safetensors", "config.json"):
        (place / name).write_bytes(b"")


def _resumable(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory(tmp_path / "x")
    directory.create(CONFIG)
    _write_checkpoint(directory, 7, 96)
    return directory


def _history(directory: RunDirectory) -> list[dict[str, Any]]:
    return [json.loads(line) for line in directory.history.read_text().splitlines()]


def test_a_longer_run_is_written_down_once(tmp_path: Path) -> None:
    directory = _resumable(tmp_path)
    longer = directory.resume_config(["episodes=8000", "eval.every=64", "alarms.entropy_low=0.1"])
    changes = directory.change_config(longer)
    assert [change.setting for change in changes] == ["episodes", "eval.every", "alarms.entropy_low"]
    assert directory.change_config(longer) == []
    assert directory.resume_config() == longer
    (entry,) = _history(directory)
    assert (entry["step"], entry["episodes"]) == (7, 96)
    assert entry["changes"]["episodes"] == {"before": 4000, "after": 8000}
    directory.change_config(longer.model_copy(update={"episodes": 9000}))
    assert len(_history(directory)) == 2


def test_a_change_that_was_written_down_and_not_made_is_not_told_twice(tmp_path: Path) -> None:
    directory = _resumable(tmp_path)
    before = directory.config.read_bytes()
    longer = directory.resume_config(["episodes=8000"])
    directory.change_config(longer)
    directory.config.write_bytes(before)
    directory.change_config(longer)
    assert len(_history(directory)) == 1


_OTHER_EXPERIMENTS = [
    "seed=1",
    "arm=sft",
    "model=smollm2",
    "rl.loss=grpo",
    "optim.learning_rate=1.0",
    "ttf.weight=1.0",
    "tasks=worlds:demo",
    "eval.temperature=0.5",
    "warm.episodes=1",
]


@pytest.mark.parametrize("change", _OTHER_EXPERIMENTS)
def test_another_experiment_is_refused_with_what_may_change(tmp_path: Path, change: str) -> None:
    directory = _resumable(tmp_path)
    with pytest.raises(BadInput) as refused:
        directory.change_config(directory.resume_config([change]))
    assert change.partition("=")[0] in str(refused.value)
    assert "may change: episodes, flops, " in str(refused.value)
    assert directory.resume_config() == CONFIG
    assert not directory.history.exists()


def test_a_length_that_is_passed_already_is_refused(tmp_path: Path) -> None:
    directory = _resumable(tmp_path)
    with pytest.raises(BadInput, match="the run has had 96"):
        directory.change_config(directory.resume_config(["episodes=95"]))
