"""What an attempt at an environment is worth. The `Environment` protocol is in `core.protocols`."""

from dataclasses import dataclass, field

from gametape.core.verdict import Verdict


@dataclass(frozen=True)
class TurnMark:
    """Whether one turn was correct, where the scorer can tell. `key` says what was asked for, in the world's words."""

    turn: int
    """Counted from 1."""
    correct: bool
    load_bearing: bool = False
    key: str = ""


@dataclass(frozen=True)
class StepCredit:
    """Steps that another reward than that of the whole attempt is for. Attempts at one environment have as many
    credits, in the same order, so that each is compared with its like."""

    steps: tuple[int, ...]
    """By their numbers in the record."""
    reward: float
    given: str = ""
    """What the steps had to work with, where that differs between attempts: only those with the same are compared."""


@dataclass(frozen=True)
class EpisodeScore:
    """The outcome of one attempt. `hacked`: cheating was proven."""

    passed: bool
    reward: float
    detail: str = ""
    hacked: bool = False
    marks: tuple[TurnMark, ...] = ()
    verdict: Verdict | None = None
    """The verifier's whole answer, where the verifier scored it."""
    checks: dict[str, float] = field(default_factory=dict)
    """Scores of the layers, by name."""
    credits: tuple[StepCredit, ...] = ()
    note: tuple[str, ...] = ()
    """What the attempt has left for a later one to read."""
