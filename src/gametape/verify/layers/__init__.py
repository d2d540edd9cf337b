"""The layers of the reward: one small file each, with `score(case)` giving a check, or None where it does not apply."""

from gametape.verify.layers.context import ScoringContext
from gametape.verify.layers.profiles import run_layers

__all__ = ["ScoringContext", "run_layers"]
