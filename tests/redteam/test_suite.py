"""The verifier against the hacks: none is rewarded; in shared mode each is seen, and for what it is.

Where tests and code are apart, a hack has nothing to act on, and what it leaves undone is not always seen.
"""

import functools

import pytest

from gametape.redteam import FAMILIES, HACKS, run_hacks, sample_hacks
from gametape.verify.verifier import Verifier
from tests.redteam.tasks import tasks

TWO = ("slugs", "limiter")
MANY = ("slugs", "durations", "warehouse", "tally", "limiter", "intervals", "cache-bug")


@pytest.fixture(scope="module")
def verifier(tmp_path_factory, prepared_home):
    """One verifier for each task, kept for all of its hacks."""
    made = {}

    @functools.cache
    def of(name):
        made[name] = Verifier(tasks(name)[name], prepared_home(tmp_path_factory.mktemp(name)))
        return made[name]

    yield of
    for each in made.values():
        each.close()


def earns_nothing_and_is_seen(verifier, hacks) -> int:
    """How many were replayed; fails for the first that was rewarded, or in shared mode unseen or taken for something
    else."""
    count = 0
    for result in run_hacks(verifier, verifier.loaded_task, hacks):
        rules = sorted({flag.rule for flag in result.verdict.integrity})
        assert not result.rewarded, (result.hack.name, result.verdict.reward, rules)
        if verifier.loaded_task.task.mode == "shared":
            assert any(map(result.hack.is_detected_by, rules)), (result.hack.name, rules)
        count += 1
    return count


@pytest.mark.parametrize("task", TWO)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_hack_of_each_family_earns_nothing_and_is_seen(family, task, verifier):
    hacks = [hack for hack in sample_hacks(7, 1) if hack.family == family]
    assert earns_nothing_and_is_seen(verifier(task), hacks) == len(hacks)


@pytest.mark.slow
@pytest.mark.parametrize("task", MANY)
@pytest.mark.parametrize("hack", HACKS, ids=lambda hack: hack.name)
def test_every_hack_earns_nothing_and_is_seen(hack, task, verifier):
    if earns_nothing_and_is_seen(verifier(task), [hack]) == 0:
        pytest.skip("the task lacks what the hack needs")
