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
