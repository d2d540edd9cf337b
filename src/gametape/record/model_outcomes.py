"""How attempts with each model ended: `HOME/model_outcomes.jsonl`, one line for each attempt that has a verdict.

The router by name learns its odds from here. An attempt counts once: its key is the same when it is recorded again.
"""

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from gametape.core.base_model import StrictModel
from gametape.core.errors import GametapeError
from gametape.record.append_log import AppendLog
from gametape.record.json_lines import read_lines
from gametape.record.lock import locked

FILE = "model_outcomes.jsonl"
REMEMBERED = 200
"""The latest attempts of a model that its odds are measured on."""


class ModelOutcome(StrictModel):
    """One attempt of one model. `key` names the attempt; `time` is in seconds since the epoch."""

    key: str
    model: str
    passed: bool
    cost_usd: float = 0.0
    tokens: int = 0
    time: float = 0.0


@dataclass(frozen=True)
class ModelOdds:
    """What earlier attempts say about a model."""

    attempts: int = 0
    passed: int = 0
    mean_cost_usd: float = 0.0

    @property
    def p_success(self) -> float:
        """The chance of success after Laplace: one success and one failure are assumed before the first attempt."""
        return (self.passed + 1) / (self.attempts + 2)


def record_outcomes(home: Path, outcomes: Iterable[ModelOutcome]) -> None:
    """Add attempts to the record. Where that cannot be written the odds stay as they were, and nothing else fails."""
    lines = [outcome.model_copy(update={"time": round(time.time(), 3)}).model_dump() for outcome in outcomes]
    if not lines:
        return
    with contextlib.suppress(GametapeError, OSError):
        home.mkdir(parents=True, exist_ok=True)
        with locked(home / f".{FILE}.lock"), AppendLog.open(home / FILE, durable=False) as log:
            log.append(*lines)


def measure_odds(home: Path, model: str) -> ModelOdds:
    """The odds of a model by its latest attempts. Lines that are damaged are skipped."""
    latest: dict[str, ModelOutcome] = {}
    for line in read_lines(home / FILE):
        try:
            outcome = ModelOutcome.model_validate(line)
        except ValidationError:
            continue
        if outcome.model == model:
            latest[outcome.key] = outcome
    known = list(latest.values())[-REMEMBERED:]
    if not known:
        return ModelOdds()
    return ModelOdds(
        attempts=len(known),
        passed=sum(outcome.passed for outcome in known),
        mean_cost_usd=sum(outcome.cost_usd for outcome in known) / len(known),
    )
