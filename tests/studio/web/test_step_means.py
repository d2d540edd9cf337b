"""The strip has a figure for each colour that tokens have: means over the tokens of a step."""

from pathlib import Path
from typing import Any

import pytest

from ..runs import make_run, make_trajectory, target
from .site import browser, open_site, step_of, write_tape


def means_of(runs: Path, rollout: str) -> dict[str, Any]:
    means: dict[str, Any] = browser(open_site(runs)).get(f"/data/tape?run=run&rollout={rollout}").json()["means"]
    return means


def test_each_colour_has_the_mean_over_the_tokens_of_a_step(tmp_path: Path) -> None:
    metrics = {"completion_token_ids": [0, 2], "logprobs": [-0.5, -1.5]}
    learned = step_of(1, metrics=metrics, extra={"gametape": {"loss_mask": [0, 1]}})
    other = step_of(2, metrics=metrics, extra={"gametape": {"loss_mask": [0, 0]}})
    hint = {"step": 2, "student_logprobs": [-2.0, -1.0], "teacher_logprobs": [-1.0, -0.5], "text": "x"}
    readings = [
        {"step": 1, "learner": [-0.25, -1.25], "entropy": [0.5, 1.0]},
        {"step": 2, "learner": [-1.0], "entropy": ["x", 1.0]},
        {"step": 99, "entropy": [1.0]},
    ]
    ours = {"advantage": -0.5, "targets": [hint, {"step": 1}], "readings": readings}
    make_run(tmp_path / "run", "rlvr_ttf", [])
    write_tape(tmp_path / "run" / "trajectories" / "x.json", [learned, other], extra={"gametape": ours})
    assert means_of(tmp_path, "x") == {
        "entropy": {"1": 0.75},
        "mismatch": {"1": 0.25},
        "targeted": {"2": 0.75},
        "advantage": {"1": -0.5},
    }


def test_the_targeted_signal_is_as_the_last_update_measured_it(tmp_path: Path) -> None:
    kept = [target("large.000", 0.5), target("large.000", 2.5) | {"teacher": [-1.1, -1.2]}]
    make_trajectory(make_run(tmp_path / "run", "rlvr_ttf", [], kept), "large.000")
    assert means_of(tmp_path, "large.000")["targeted"] == {"2": pytest.approx(-1.0)}
