"""The hack suite: known ways to be rewarded without the work, ready to be planted on any task.

A verifier is worth its word when these earn nothing and are seen: `run_hacks` replays them, and the naive graders show
what each would have earned elsewhere.
"""

from gametape.verify.hacks.catalogue import HACKS, sample
from gametape.verify.hacks.hack import FAMILIES, Family, Hack
from gametape.verify.hacks.naive import GRADERS, lenient_grade, naive_grade, parsing_grade
from gametape.verify.hacks.replay import HackResult, check_out, run_hacks
from gametape.verify.hacks.target import DoesNotApply, Target

__all__ = [
    "FAMILIES",
    "GRADERS",
    "HACKS",
    "DoesNotApply",
    "Family",
    "Hack",
    "HackResult",
    "Target",
    "check_out",
    "lenient_grade",
    "naive_grade",
    "parsing_grade",
    "run_hacks",
    "sample",
]
