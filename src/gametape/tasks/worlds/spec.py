"""The settings and the seed that a world is drawn from, and the presets. The same spec gives the same world."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gametape.core.base_model import Count, Fraction, StrictModel
from gametape.core.errors import BadInput
from gametape.core.validation import raise_faults
from gametape.tasks.worlds.families import FAMILIES, ITEM_COUNT, context_index
from gametape.tasks.worlds.rules import MARKINGS, SHARED_RULES, TOOL_RULES

MIN_HORIZON, MAX_HORIZON = 4, 64
MAX_LOAD_BEARING = ITEM_COUNT // 2
FamilyName = Literal["files", "database", "build"]
RuleSplit = Literal["all", "train", "held_out"]


class WorldSpec(StrictModel):
    """`family` None draws one by the seed."""

    seed: Count = 0
    family: FamilyName | None = None
    horizon: Annotated[int, Field(ge=MIN_HORIZON, le=MAX_HORIZON)] = 12
    """How many jobs there are."""
    load_bearing: Annotated[int, Field(ge=0, le=MAX_LOAD_BEARING)] = 1
    """How many of them turn on a rule."""
    base_rate: Fraction = 0.2
    """How often a noisy expert follows the rule there, and so what a warm start learns."""
    error_delay: Annotated[int, Field(ge=0, le=MAX_HORIZON)] = 0
    """How many turns later a violation is reported."""
    hints: Literal["shared", "instance"] = "shared"
    """Whether rules hold in every world (`shared`), or are drawn for each (`instance`)."""
    rules: Annotated[tuple[str, ...], Field(min_length=1)] = tuple(SHARED_RULES)
    """The markings that may occur."""
    split: RuleSplit = "all"
    """Which pairs of a rule and a context may occur: those to train on, those held out for tests, or both."""
    retry: bool = False
    """Whether a job whose violation was reported is given again, once."""

    @model_validator(mode="after")
    def _can_be_drawn(self) -> Self:
        if self.load_bearing > self.horizon:
            raise_faults([(("load_bearing",), f"at most the horizon, {self.horizon}")])
        known = SHARED_RULES if self.hints == "shared" else MARKINGS
        if unknown := [rule for rule in self.rules if rule not in known]:
            kind = "shared rules" if self.hints == "shared" else "rules"
            raise_faults([(("rules",), f"{kind} ({', '.join(known)}), not {unknown[0]}")])
        return self

    @property
    def bucket(self) -> str:
        """All settings but the seed, abbreviated. Names and random streams are derived from it."""
        return (
            f"{self.family or 'any'}-h{self.horizon}-m{self.load_bearing}-p{self.base_rate:g}-d{self.error_delay}"
            f"-{self.hints}-{self.split}{'-retry' if self.retry else ''}{self._rules_in_short()}"
        )

    def _rules_in_short(self) -> str:
        return "" if self.rules == tuple(SHARED_RULES) else "-" + "+".join(self.rules)

    def allows(self, marking: str, kind: str) -> bool:
        return self.split == "all" or is_held_out_rule(marking, kind) == (self.split == "held_out")


def is_held_out_rule(marking: str, kind: str) -> bool:
    """Whether this pair is held out of training: each rule is, in one of the three kinds of each family."""
    return (MARKINGS.index(marking) + context_index(kind)) % len(FAMILIES) == 0


def spec_stream(spec: WorldSpec, seed: int) -> Iterator[WorldSpec]:
    """An endless stream of specs that differ in their seeds only, which depend on `seed` alone."""
    number = 0
    while True:
        yield spec.model_copy(update={"seed": stream_seed(seed, number)})
        number += 1


def stream_seed(seed: int, number: int) -> int:
    """The seed of the world with this number in a stream."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{number}".encode()).digest()[:6], "big")


PRESETS: Mapping[str, WorldSpec] = {
    "demo": WorldSpec(family="files", horizon=10, load_bearing=8, base_rate=0.4, rules=TOOL_RULES),
    "easy": WorldSpec(horizon=8, load_bearing=1, base_rate=0.5),
    "moderate": WorldSpec(horizon=12, load_bearing=1, base_rate=0.2),
    "starved": WorldSpec(horizon=16, load_bearing=2, base_rate=0.05),
    "long": WorldSpec(horizon=48, load_bearing=2, base_rate=0.2),
    "memory": WorldSpec(family="files", horizon=4, load_bearing=0, base_rate=0.4),
    "easy-tools": WorldSpec(horizon=8, load_bearing=1, base_rate=0.5, rules=TOOL_RULES),
    "moderate-tools": WorldSpec(horizon=12, load_bearing=1, base_rate=0.2, rules=TOOL_RULES),
    "starved-tools": WorldSpec(horizon=12, load_bearing=3, base_rate=0.2, rules=TOOL_RULES),
    "barren-tools": WorldSpec(horizon=12, load_bearing=5, base_rate=0.2, rules=TOOL_RULES),
}
"""`memory` worlds are played in pairs, by a writer of a note and a reader; their base rate is that of right notes.
Presets named `-tools` have only rules that demand a tool, and none that demands a mode."""


MEMORY_PRESET = "memory"


def preset(name: str) -> WorldSpec:
    if name not in PRESETS:
        raise BadInput(f"worlds:{name}: no such worlds; there are {', '.join(PRESETS)}")
    return PRESETS[name]
