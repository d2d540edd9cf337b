"""Other places for the figures of a run: they get its numbers, and are not needed unless asked for."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gametape.core.config import RunConfig
from gametape.core.errors import MissingDependency
from gametape.train.run_directory import MetricsLog
from gametape.train.trackers import flat_numbers, open_trackers

CONFIG = RunConfig(arm="rlvr", tasks="worlds:easy")


def test_numbers_are_named_by_their_path_and_all_else_is_left_out() -> None:
    times = {"idle": 0.25, "decode": float("nan")}
    line = {"loss": 0.5, "time": times, "why": "x", "requests": [1], "n": 3, "ok": True}
    assert flat_numbers("update", line) == {"update/loss": 0.5, "update/time/idle": 0.25, "update/n": 3.0}


@pytest.mark.parametrize("name", ["tensorboard", "trackio", "wandb"])
def test_what_is_not_installed_is_one_clear_line(name: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependency, match=f"^track: {name} is not installed: pip install {name}"):
        open_trackers([name], tmp_path, CONFIG)


def test_a_run_of_a_service_is_opened_told_and_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a module with the functions that both services document."""
    told: list[Any] = []
    service = SimpleNamespace(
        init=lambda **options: told.append(("init", options["project"], options["name"], options["config"]["arm"])),
        log=lambda values, step: told.append((step, values)),
        finish=lambda: told.append("finish"),
    )
    monkeypatch.setitem(sys.modules, "trackio", service)
    log = MetricsLog(tmp_path / "metrics.jsonl", trackers=open_trackers(["trackio"], tmp_path / "first", CONFIG))
    log.write("update", 3, loss=0.5, requests=[1, 2])
    log.close()
    assert told == [("init", "gametape", "first", "rlvr"), (3, {"update/loss": 0.5}), "finish"]
    assert json.loads((tmp_path / "metrics.jsonl").read_text()) == {
        "kind": "update",
        "step": 3,
        "loss": 0.5,
        "requests": [1, 2],
    }


def test_tensorboard_gets_files_where_it_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    (tracker,) = open_trackers(["tensorboard"], tmp_path, CONFIG)
    tracker.log(1, {"update/loss": 0.5})
    tracker.close()
    assert list((tmp_path / "tensorboard").iterdir())
