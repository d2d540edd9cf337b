"""Something to be done, ready to be played: what is said first, the tools, the place, and who judges.

A procedural world in memory and a task in a sandbox look the same from here, so one loop trains and evaluates on both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gametape.core.protocols import Tool, Workspace
from gametape.core.verdict import Verdict


@dataclass(frozen=True)
class TurnMark:
    """How one turn went, where whoever judges can tell. `key` says what was asked for there, in the world's words."""

    turn: int
    """Counted from 1."""
    correct: bool
    load_bearing: bool = False
    key: str = ""


@dataclass(frozen=True)
class EpisodeScore:
    """What an attempt is worth. `hacked`: something proven stands against it."""

    passed: bool
    reward: float
    detail: str = ""
    hacked: bool = False
    marks: tuple[TurnMark, ...] = ()
    verdict: Verdict | None = None
    """The verifier's whole answer, where it was the one to judge."""
    checks: dict[str, float] = field(default_factory=dict)
    """Scores of the layers, by name."""


class Environment(Protocol):
    """One prompt. It can be played any number of times, also at once."""

    @property
    def name(self) -> str:
        """The same for the same prompt, in any process."""
        ...

    @property
    def bucket(self) -> str:
        """The family that it is drawn from; prompts that never recur are counted together by it."""
        ...

    @property
    def system_prompt(self) -> str: ...

    @property
    def user_prompt(self) -> str: ...

    @property
    def max_turns(self) -> int:
        """How many turns an attempt may take."""
        ...

    def tools(self) -> Sequence[Tool]: ...

    async def reset(self) -> Workspace:
        """A new place for an attempt, in its starting state. Whoever opened it closes it."""
        ...

    async def score(self, workspace: Workspace) -> EpisodeScore: ...
