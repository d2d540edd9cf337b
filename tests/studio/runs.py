"""Small run directories, written by hand in the form that `train` leaves them."""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from gametape.core.atif import Agent, Observation, ObservationResult, ToolCall
from gametape.core.hint import Hint, HintGates, HintVersions
from gametape.core.step import Step
from gametape.core.trajectory import ATIF_VERSION, Trajectory
from gametape.record.trajectory_file import save_trajectory

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m"
WORDS = {"pack": 0, "mark": 1, "red": 2, HOSTILE: 3}


def score(episodes_so_far: int, success: float, episodes: int = 200) -> dict[str, Any]:
    return {
        "kind": "eval",
        "step": episodes_so_far // 64,
        "episodes_so_far": episodes_so_far,
        "episodes": episodes,
        "success": success,
        "load_bearing": success,
        "ordinary": 0.99,
        "hinted": 0.9,
        "flops": episodes_so_far * 1_000_000,
    }


def make_run(root: Path, arm: str, scores: list[dict[str, Any]], targets: list[dict[str, Any]] | None = None) -> Path:
    root.mkdir(parents=True)
    (root / "config.toml").write_text(f'arm = "{arm}"\nepisodes = 640\n')
    _write(root / "metrics.jsonl", scores)
    if targets is not None:
        _write(root / "targets.jsonl", targets)
        (root / "start").mkdir()
        Tokenizer(WordLevel(WORDS, unk_token="pack")).save(str(root / "start" / "tokenizer.json"))
    return root


def target(rollout: str, kl: float, text: str = "rule : mark before pack", step: int = 2) -> dict[str, Any]:
    return {
        "update": 3,
        "rollout": rollout,
        "kind": "rule",
        "text": text,
        "step": step,
        "ids": [0, 3],
        "student": [-0.1, -0.2],
        "teacher": [-3.0, -0.3],
        "kl": [kl, 0.01],
        "weights": [1.0, 0.5],
        "student_top": [[[0, 0.9], [1, 0.05]], [[2, 0.8]]],
        "teacher_top": [[[1, 0.95], [0, 0.02]], [[3, 0.7]]],
    }


def make_trajectory(root: Path, name: str, text: str = "rule : mark before pack") -> None:
    hint = Hint(
        trajectory_id=name,
        step=2,
        span=(0, 2),
        source="tool_error",
        type="rule",
        text=text,
        hint_ids=[1],
        gates=HintGates(),
        used=True,
        evidence=HOSTILE,
        noticed=3,
        versions=HintVersions(policy=0, teacher=0),
    )
    call = ToolCall(tool_call_id="c1", function_name="pack", arguments={"item": HOSTILE})
    back = Observation(results=[ObservationResult(source_call_id="c1", content=f"error : {HOSTILE}")])
    steps = [
        Step(step_id=1, source="user", message="first red"),
        Step(step_id=2, source="agent", message="", tool_calls=[call], observation=back),
        Step(step_id=3, source="agent", message="done"),
    ]
    told = {"targets": [hint.model_dump(mode="json", exclude_none=True)], "advantage": -0.25}
    directory = root / "trajectories"
    directory.mkdir(exist_ok=True)
    save_trajectory(
        directory / f"{name}.json",
        Trajectory(
            schema_version=ATIF_VERSION,
            session_id=name,
            trajectory_id=name,
            agent=Agent(name="gametape", version="0", model_name="policy"),
            steps=steps,
            extra={"task": HOSTILE, "outcome": "failed", "gametape": told},
        ),
    )


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
