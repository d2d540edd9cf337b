"""The rules of load-bearing turns: a marked item refuses the usual tool and demands another tool, or a mode.

Shared rules hold in every world, so what a policy learns of one in some contexts should hold in others. Practice rules
are drawn for each world: they teach a policy to read hints without revealing the shared rules.
"""

from collections.abc import Mapping, Sequence
from random import Random

SPECIAL_TOOLS = ("patch", "append", "merge", "stage", "swap")
MODES = ("force", "safe", "once")
DEMANDS = SPECIAL_TOOLS + MODES
"""What a rule can demand: a tool in place of the usual one, or a mode of the usual one."""

SHARED_RULES: Mapping[str, str] = dict(
    zip(("sealed", "hidden", "shared", "full", "stale", "locked", "fragile", "hot"), DEMANDS, strict=True)
)
"""By marking: what an item with this marking demands, in every world."""

TOOL_RULES = tuple(marking for marking, demand in SHARED_RULES.items() if demand in SPECIAL_TOOLS)

PRACTICE_MARKINGS = (
    *("frozen", "dusty", "heavy", "bright", "broken", "narrow", "foreign", "silent"),
    *("brittle", "crooked", "faded", "hollow", "loose", "murky", "rough", "steep"),
)
"""Markings without a shared rule."""

MARKINGS = (*SHARED_RULES, *PRACTICE_MARKINGS)


def draw_rules(markings: Sequence[str], rng: Random) -> dict[str, str]:
    """A rule for each of these markings, for one world. Demands differ as long as there are enough."""
    demands: list[str] = []
    while len(demands) < len(markings):
        demands += rng.sample(DEMANDS, len(DEMANDS))
    return dict(zip(markings, demands, strict=False))


def rule_text(marking: str, kind: str, demand: str) -> str:
    """The rule in words, as errors and hints say it."""
    return f"a {marking} {kind} takes {demand}"
