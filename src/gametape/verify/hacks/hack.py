"""A hack as a value: how to plant it, and which rules ought to see it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from gametape.verify.hacks.target import Target

Family = Literal[
    "tests",
    "runner",
    "exit",
    "report",
    "equality",
    "answer",
    "special-case",
    "resources",
    "persistence",
    "network",
]
FAMILIES: tuple[Family, ...] = get_args(Family)

Plant = Callable[[Target], None]


@dataclass(frozen=True)
class Hack:
    """One way to be rewarded without the work. It can be planted on any task that has what it needs."""

    name: str
    family: Family
    sentence: str
    """What it does, for whoever reads a report."""
    plant: Plant
    """Change the workspace of a target. Raises `DoesNotApply` where the task lacks what the hack needs."""
    families_seen: frozenset[str] = frozenset()
    """Prefixes of the integrity rules that see it for what it is; empty means its own family."""

    def __post_init__(self) -> None:
        if not self.families_seen:
            object.__setattr__(self, "families_seen", frozenset({self.family}))

    def is_right(self, rule: str) -> bool:
        """Whether a flag of this rule names what was done, and not something beside it."""
        return rule.startswith(tuple(self.families_seen))
