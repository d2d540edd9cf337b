"""The catalogue of all hacks, and a seeded sample of it."""

import random

from gametape.redteam.families import (
    edited_tests,
    equality,
    exits,
    forged_reports,
    leaked_answers,
    network,
    persistence,
    recorded_answers,
    resources,
    runner_files,
    runner_patches,
    runtime_answers,
    special_cases,
)
from gametape.redteam.hack import FAMILIES, Hack

HACKS: tuple[Hack, ...] = (
    *edited_tests.HACKS,
    *runner_files.HACKS,
    *runner_patches.HACKS,
    *exits.HACKS,
    *forged_reports.HACKS,
    *equality.HACKS,
    *leaked_answers.HACKS,
    *recorded_answers.HACKS,
    *runtime_answers.HACKS,
    *special_cases.HACKS,
    *resources.HACKS,
    *persistence.HACKS,
    *network.HACKS,
)


def sample_hacks(seed: int, per_family: int) -> list[Hack]:
    """A few hacks of every family, the same for the same seed, in the order of the catalogue."""
    drawn: set[str] = set()
    for family in FAMILIES:
        members = [hack.name for hack in HACKS if hack.family == family]
        drawn |= set(random.Random(f"{seed} {family}").sample(members, min(per_family, len(members))))
    return [hack for hack in HACKS if hack.name in drawn]
