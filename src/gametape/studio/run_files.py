"""The files of a training run, as they lie on disk: read only, finished or not."""

import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput
from gametape.core.trajectory import Trajectory
from gametape.record.files import load
from gametape.record.json_lines import read_lines
from gametape.record.trouble import shown


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
            raise BadInput(f"{shown(path)}: not the configuration of a run ({error})") from None

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        return [*read_lines(self.root / "metrics.jsonl")]

    @property
    def arm(self) -> str:
        return str(self.config.get("arm", self.root.name))

    @property
    def scores(self) -> list[dict[str, Any]]:
        """Held-out scores, the first from before any update. Each has `episodes_so_far` and `flops`."""
        return [line for line in self.metrics if line.get("kind") == "eval"]

    @property
    def alarms(self) -> list[dict[str, Any]]:
        return [line for line in self.metrics if line.get("kind") == "alarm"]

    @cached_property
    def targets(self) -> list[dict[str, Any]]:
        """What each target did in its update: a line with the hint, and columns by token."""
        return [*read_lines(self.root / "targets.jsonl")]

    def trajectory(self, name: str) -> Trajectory | None:
        """A rollout that was kept, by its name; None for all the others."""
        path = self.root / "trajectories" / f"{name}.json"
        return load(path) if path.name == f"{name}.json" and path.is_file() else None

    @cached_property
    def words(self) -> dict[int, str]:
        """The text of each token, where a tokenizer lies beside the weights that the run began with."""
        from tokenizers import Tokenizer  # noqa: PLC0415 - slow to import, and only tapes need it

        path = self.root / "start" / "tokenizer.json"
        if not path.is_file():
            return {}
        return {number: text for text, number in Tokenizer.from_file(str(path)).get_vocab().items()}
