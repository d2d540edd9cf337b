"""The layers of the reward, one small file each: `score(context)` gives a check, or None where it does not apply."""

from gametape.verify.layers.context import ScoringContext
from gametape.verify.layers.profiles import run_layers

__all__ = ["ScoringContext", "run_layers"]
