"""The rules that decide load-bearing turns: a marked thing refuses the usual tool and takes another, or a mode of it.

The shared rules hold in every world, so what is learned of one in some contexts should hold in others. Practice rules
are drawn anew for each world: they serve to learn the reading of hints without a word about the shared ones.
"""

from collections.abc import Mapping, Sequence
from random import Random

SPECIAL_TOOLS = ("patch", "append", "merge", "stage", "swap")
MODES = ("force", "safe", "once")
DEMANDS = SPECIAL_TOOLS + MODES
"""What a rule can ask for: a tool in place of the usual one, or a mode of the usual one."""

SHARED_RULES: Mapping[str, str] = dict(
    zip(("sealed", "hidden", "shared", "full", "stale", "locked", "fragile", "hot"), DEMANDS, strict=True)
)
"""By marking: what a thing so marked takes, in every world."""

TOOL_RULES = tuple(marking for marking, demand in SHARED_RULES.items() if demand in SPECIAL_TOOLS)

PRACTICE_MARKINGS = (
    *("frozen", "dusty", "heavy", "bright", "broken", "narrow", "foreign", "silent"),
    *("brittle", "crooked", "faded", "hollow", "loose", "murky", "rough", "steep"),
)
"""Markings without a rule of their own."""

MARKINGS = (*SHARED_RULES, *PRACTICE_MARKINGS)


def draw_rules(markings: Sequence[str], rng: Random) -> dict[str, str]:
    """A rule for each of these markings, for one world. No two ask for the same while that is possible."""
    demands: list[str] = []
    while len(demands) < len(markings):
        demands += rng.sample(DEMANDS, len(DEMANDS))
    return dict(zip(markings, demands, strict=False))


def rule_text(marking: str, kind: str, demand: str) -> str:
    """The rule in words, as errors and hints say it."""
    return f"a {marking} {kind} takes {demand}"
