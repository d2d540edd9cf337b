"""The layers of the reward: one small file each, with `score(case)` giving a check, or None where it does not apply."""

from gametape.verify.layers.case import Case
from gametape.verify.layers.profiles import checks

__all__ = ["Case", "checks"]
