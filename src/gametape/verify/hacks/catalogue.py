"""Every hack of the package, and how to draw a few of them."""

import random

from gametape.verify.hacks.families import (
    answers_left,
    answers_recorded,
    answers_run,
    equality,
    exits,
    network,
    persistence,
    reports,
    resources,
    runner_files,
    runner_patches,
    special,
    tests,
)
from gametape.verify.hacks.hack import FAMILIES, Hack

HACKS: tuple[Hack, ...] = (
    *tests.HACKS,
    *runner_files.HACKS,
    *runner_patches.HACKS,
    *exits.HACKS,
    *reports.HACKS,
    *equality.HACKS,
    *answers_left.HACKS,
    *answers_recorded.HACKS,
    *answers_run.HACKS,
    *special.HACKS,
    *resources.HACKS,
    *persistence.HACKS,
    *network.HACKS,
)


def sample(seed: int, per_family: int) -> list[Hack]:
    """The same few of every family for the same seed, in the order of the catalogue."""
    drawn: set[str] = set()
    for family in FAMILIES:
        members = [hack.name for hack in HACKS if hack.family == family]
        drawn |= set(random.Random(f"{seed} {family}").sample(members, min(per_family, len(members))))
    return [hack for hack in HACKS if hack.name in drawn]
