"""Two forks of a rollout beside each other, without a hint and with it, as far as a reader needs them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gametape.agent.episode import Episode
from gametape.core.step import Step
from gametape.watch.observed_step import observed_step

_MOST_TURNS = 40
_MOST_CHARACTERS = 400


@dataclass(frozen=True)
class ForkTurn:
    said: str
    calls: list[str]
    result: str
    failed: bool


@dataclass(frozen=True)
class ForkSide:
    """One fork from the turn that is judged; `more` says how many turns it had beyond those that are kept."""

    passed: bool
    turns: list[ForkTurn]
    more: int = 0


@dataclass(frozen=True)
class ForkPair:
    """Both are of one seed. `step` is the one that the hint stands at."""

    step: int
    plain: ForkSide
    hinted: ForkSide

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def telling_pair(step: int, turn: int, plain: Sequence[Episode], hinted: Sequence[Episode]) -> ForkPair | None:
    """Of forks in pairs, the first in which only the one with the hint succeeds, else the first; None without any."""
    pairs = [pair for pair in zip(plain, hinted, strict=True) if all(episode.score for episode in pair)]
    told = [pair for pair in pairs if _passed(pair[1]) and not _passed(pair[0])]
    if not pairs:
        return None
    without, with_it = (told or pairs)[0]
    return ForkPair(step, _side(without, turn), _side(with_it, turn))


def _passed(episode: Episode) -> bool:
    return bool(episode.score and episode.score.passed)


def _side(episode: Episode, turn: int) -> ForkSide:
    steps = [step for step in episode.steps if step.source == "agent" and not step.gametape_extra.summary][turn - 1 :]
    return ForkSide(_passed(episode), [_turn(step) for step in steps[:_MOST_TURNS]], max(0, len(steps) - _MOST_TURNS))


def _turn(step: Step) -> ForkTurn:
    observed = observed_step(step)
    calls = [f"{action.tool} {action.arguments}"[:_MOST_CHARACTERS] for action in observed.actions] if observed else []
    results = step.observation.results if step.observation else []
    failed = any((result.extra or {}).get("failed") for result in results)
    said = observed.text if observed else ""
    result = observed.result if observed and observed.result else ""
    return ForkTurn(said[:_MOST_CHARACTERS], calls, result[:_MOST_CHARACTERS], failed)
