"""The hack suite: known ways to be rewarded without the work, ready to be planted on any task.

A verifier is worth its word when these earn nothing and are seen: `run_hacks` replays them, and the naive graders show
what each would have earned elsewhere.
"""

from gametape.redteam.catalogue import HACKS, sample_hacks
from gametape.redteam.hack import FAMILIES, Family, Hack
from gametape.redteam.hack_runner import HackResult, check_out_with_hack, run_hacks
from gametape.redteam.hack_target import HackNotApplicable, HackTarget
from gametape.redteam.naive_graders import GRADERS, lenient_grade, naive_grade, parsing_grade

__all__ = [
    "FAMILIES",
    "GRADERS",
    "HACKS",
    "Family",
    "Hack",
    "HackNotApplicable",
    "HackResult",
    "HackTarget",
    "check_out_with_hack",
    "lenient_grade",
    "naive_grade",
    "parsing_grade",
    "run_hacks",
    "sample_hacks",
]
