"""Worlds with a name, from those that a warm start nearly masters to those in which a reward is hardly ever seen."""

from collections.abc import Mapping

from gametape.core.errors import BadInput
from gametape.tasks.worlds.rules import TOOL_RULES
from gametape.tasks.worlds.spec import WorldSpec

PRESETS: Mapping[str, WorldSpec] = {
    "demo": WorldSpec(family="files", horizon=10, load_bearing=8, base_rate=0.4, rules=TOOL_RULES),
    "easy": WorldSpec(horizon=8, load_bearing=1, base_rate=0.5),
    "moderate": WorldSpec(horizon=12, load_bearing=1, base_rate=0.2),
    "starved": WorldSpec(horizon=16, load_bearing=2, base_rate=0.05),
    "long": WorldSpec(horizon=48, load_bearing=2, base_rate=0.2),
    "easy-tools": WorldSpec(horizon=8, load_bearing=1, base_rate=0.5, rules=TOOL_RULES),
    "moderate-tools": WorldSpec(horizon=12, load_bearing=1, base_rate=0.2, rules=TOOL_RULES),
    "starved-tools": WorldSpec(horizon=12, load_bearing=3, base_rate=0.2, rules=TOOL_RULES),
    "barren-tools": WorldSpec(horizon=12, load_bearing=5, base_rate=0.2, rules=TOOL_RULES),
}
"""Those named after tools have only the rules that ask for another tool, and none that asks for a mode."""


def preset(name: str) -> WorldSpec:
    if name not in PRESETS:
        raise BadInput(f"worlds:{name}: no such worlds; there are {', '.join(PRESETS)}")
    return PRESETS[name]
