"""The files of a training run on disk, read only. The run may be finished or not."""

import tomllib
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput
from gametape.core.trajectory import Trajectory
from gametape.record.errors import printable_path
from gametape.record.json_lines import read_lines
from gametape.record.trajectory_file import load_trajectory

TARGET_COLUMNS = ("ids", "student", "teacher", "kl", "weights", "student_top", "teacher_top")
"""The columns by token in a line of `targets.jsonl`."""
_TARGET = {"update", "rollout", "step", "kind", "text", *TARGET_COLUMNS}


@dataclass(frozen=True)
class RunFiles:
    """`RUN/{config.toml, metrics.jsonl, targets.jsonl, trajectories/, start/}`."""

    root: Path

    @cached_property
    def config(self) -> dict[str, Any]:
        path = self.root / "config.toml"
        try:
            return tomllib.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise BadInput(f"{printable_path(path)}: not the configuration of a run ({error})") from None

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        return [*read_lines(self.root / "metrics.jsonl")]

    @property
    def arm(self) -> str:
        return str(self.config.get("arm", self.root.name))

    @property
    def scores(self) -> list[dict[str, Any]]:
        """Held-out scores, the first from before any update. Each has `episodes_so_far` and `flops`."""
        scores = [line for line in self.metrics if line.get("kind") == "eval"]
        if not all(_is_score(score) for score in scores):
            raise BadInput(f"{printable_path(self.root / 'metrics.jsonl')}: a held-out score in it is no number")
        return scores

    @property
    def alarms(self) -> list[dict[str, Any]]:
        return [line for line in self.metrics if line.get("kind") == "alarm"]

    @cached_property
    def targets(self) -> list[dict[str, Any]]:
        """The effect of each target in its update: the hint, and columns by token."""
        path = self.root / "targets.jsonl"
        lines = [*read_lines(path)]
        for number, line in enumerate(lines, start=1):
            if missing := sorted(_TARGET - line.keys()):
                raise BadInput(f"{printable_path(path)}, line {number}: not a record of a target: no {missing[0]}")
        return lines

    def trajectory(self, name: str) -> Trajectory | None:
        """A saved rollout by its name; None where it was not saved."""
        path = self.root / "trajectories" / f"{name}.json"
        return load_trajectory(path) if path.name == f"{name}.json" and path.is_file() else None

    @cached_property
    def vocabulary(self) -> dict[int, str]:
        """The text of each token; empty where no tokenizer lies beside the weights that the run began with."""
        from tokenizers import Tokenizer  # noqa: PLC0415 - slow to import, and only rollout views need it

        path = self.root / "start" / "tokenizer.json"
        if not path.is_file():
            return {}
        try:
            vocabulary = Tokenizer.from_file(str(path)).get_vocab()
        except Exception as error:  # the library has nothing more precise
            raise BadInput(f"{printable_path(path)}: not a tokenizer ({error})") from error
        return {number: text for text, number in vocabulary.items()}


def _is_score(score: dict[str, Any]) -> bool:
    values = (score.get("success"), score.get("episodes"))
    return all(isinstance(value, int | float) and isfinite(value) for value in values)
