"""What a world is drawn from: its knobs and a seed. The same spec gives the same world in every process."""

import hashlib
from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gametape.core.model import Closed, Count, Fraction
from gametape.core.problems import refuse
from gametape.tasks.worlds.families import FAMILIES, NAMES, context_index
from gametape.tasks.worlds.rules import MARKINGS, SHARED

SHORTEST, LONGEST = 4, 64
MOST_LOAD_BEARING = NAMES // 2
FamilyName = Literal["files", "database", "build"]
Split = Literal["all", "train", "held_out"]


class WorldSpec(Closed):
    """`family` None draws one by the seed."""

    seed: Count = 0
    family: FamilyName | None = None
    horizon: Annotated[int, Field(ge=SHORTEST, le=LONGEST)] = 12
    """How many jobs there are."""
    load_bearing: Annotated[int, Field(ge=0, le=MOST_LOAD_BEARING)] = 1
    """How many of them turn on a rule."""
    base_rate: Fraction = 0.2
    """How often a noisy expert keeps to the rule there: what a warm start is to learn, and no more."""
    error_delay: Annotated[int, Field(ge=0, le=LONGEST)] = 0
    """After how many further turns a violation is told."""
    hints: Literal["shared", "instance"] = "shared"
    """Whether rules hold in every world, or are drawn anew for each."""
    rules: Annotated[tuple[str, ...], Field(min_length=1)] = tuple(SHARED)
    """The markings that may occur."""
    split: Split = "all"
    """Which pairs of a rule and a context may occur: those to train on, those held out for tests, or both."""
    retry: bool = False
    """Whether a job whose violation has been told comes back, once."""

    @model_validator(mode="after")
    def _can_be_drawn(self) -> Self:
        if self.load_bearing > self.horizon:
            refuse([(("load_bearing",), f"at most the horizon, {self.horizon}")])
        known = SHARED if self.hints == "shared" else MARKINGS
        if unknown := [rule for rule in self.rules if rule not in known]:
            kind = "shared rules" if self.hints == "shared" else "rules"
            refuse([(("rules",), f"{kind} ({', '.join(known)}), not {unknown[0]}")])
        return self

    @property
    def cell(self) -> str:
        """All knobs but the seed, in short."""
        return (
            f"{self.family or 'any'}-h{self.horizon}-m{self.load_bearing}-p{self.base_rate:g}-d{self.error_delay}"
            f"-{self.hints}-{self.split}{'-retry' if self.retry else ''}{self._rules_in_short()}"
        )

    def _rules_in_short(self) -> str:
        return "" if self.rules == tuple(SHARED) else "-" + "+".join(self.rules)

    def allows(self, marking: str, kind: str) -> bool:
        return self.split == "all" or held_out(marking, kind) == (self.split == "held_out")


def held_out(marking: str, kind: str) -> bool:
    """Whether this pair is kept from training: each rule in one of the three kinds of each family."""
    return (MARKINGS.index(marking) + context_index(kind)) % len(FAMILIES) == 0


def stream(spec: WorldSpec, seed: int) -> Iterator[WorldSpec]:
    """Specs without end, equal but for their seeds, which depend on `seed` alone. No prompt is likely to recur."""
    number = 0
    while True:
        yield spec.model_copy(update={"seed": seed_of(seed, number)})
        number += 1


def seed_of(seed: int, number: int) -> int:
    """The seed of the so-and-so-many-th world of a stream."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{number}".encode()).digest()[:6], "big")
