"""The type of a hack: how to plant it, and which rules detect it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from gametape.redteam.hack_target import HackTarget

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

PlantFunction = Callable[[HackTarget], None]


@dataclass(frozen=True)
class Hack:
    """One way to be rewarded without the work. It can be planted on any task that has what it needs."""

    name: str
    family: Family
    description: str
    """What it does, for reports."""
    plant: PlantFunction
    """Change the workspace of a target. Raises `HackNotApplicable` where the task lacks what the hack needs."""
    detecting_families: frozenset[str] = frozenset()
    """Prefixes of the integrity rules that detect it; empty means its own family."""

    def __post_init__(self) -> None:
        if not self.detecting_families:
            object.__setattr__(self, "detecting_families", frozenset({self.family}))

    def is_detected_by(self, rule: str) -> bool:
        """Whether a flag of this rule names what was done, and not something beside it."""
        return rule.startswith(tuple(self.detecting_families))
