"""The hack suite: known ways to be rewarded without the work, ready to be planted on any task.

A verifier can be trusted when these earn nothing and are flagged: `run_hacks` plants each and collects the verdicts.
"""

from gametape.redteam.catalogue import HACKS, sample_hacks
from gametape.redteam.hack import FAMILIES, Family, Hack
from gametape.redteam.hack_runner import HackResult, check_out_with_hack, run_hacks
from gametape.redteam.hack_target import HackNotApplicable, HackTarget

__all__ = [
    "FAMILIES",
    "HACKS",
    "Family",
    "Hack",
    "HackNotApplicable",
    "HackResult",
    "HackTarget",
    "check_out_with_hack",
    "run_hacks",
    "sample_hacks",
]
