import itertools
import random

import pytest

from gametape.tasks.mining.held_out.removable_tests import RemovableTests, SuiteCut
from gametape.tasks.mining.held_out.split import HeldOutSplit, split_held_out, unsplittable
from tests.patience import effort


def unit(*tests: str) -> RemovableTests:
    return RemovableTests(frozenset(tests), frozenset([SuiteCut("t.py", hash(tests))]))


def parted(
    units: list[RemovableTests], failing: str, covers: dict[str, str], passing: str = "", seed: int = 0
) -> HeldOutSplit | None:
    wanted = {key: frozenset(tests) for key, tests in covers.items()}
    return split_held_out(units, list(failing), list(passing), wanted, random.Random(seed))


def test_each_key_has_both_parts() -> None:
    units = [unit(test) for test in "abcdef"]
    for seed in range(20):
        found = parted(units, "abcdef", {"f": "abcdef", "g": "ab", "h": "bc"}, seed=seed)
        assert found is not None
        assert sorted(found.visible + found.held_out) == [*"abcdef"]
        assert all({*found.held_out} & {*key} and {*found.visible} & {*key} for key in ("ab", "bc"))
        assert found.also_hidden == ()
        assert found.cuts == {cut for each in units if each.ids <= {*found.held_out} for cut in each.cuts}


def test_about_a_third_is_held_out() -> None:
    failing = [str(number) for number in range(100)]
    found = split_held_out([unit(test) for test in failing], failing, [], {"f": frozenset(failing)}, random.Random(0))
    assert found is not None
    assert len(found.held_out) == 30
    assert found.visible == tuple(test for test in failing if test not in {*found.held_out})


def test_the_same_seed_draws_the_same() -> None:
    units = [unit(test) for test in "abcdefgh"]
    draws = [parted(units, "abcdefgh", {"f": "abcdefgh"}, seed=seed) for seed in (1, 1, 2, 3, 4)]
    assert draws[0] == draws[1]
    assert len({each.held_out for each in draws if each}) > 1


def test_passing_tests_are_lost_only_if_they_must_be() -> None:
    units = [unit("a", "p", "q"), unit("b", "p"), unit("c")]
    cheap = parted(units, "abc", {"f": "abc"}, "pq")
    assert cheap is not None
    assert (cheap.held_out, cheap.also_hidden) == (("c",), ())
    dear = parted(units, "abc", {"f": "ab"}, "pq")
    assert dear is not None
    assert (dear.held_out, dear.also_hidden) == (("b",), ("p",))


def test_tests_that_nobody_asks_for_cost_nothing_and_are_named() -> None:
    found = parted([unit("a", "x", "y"), unit("b", "p")], "ab", {"f": "ab"}, "p")
    assert found is not None
    assert (found.held_out, found.also_hidden) == (("a",), ("x", "y"))


def test_more_than_half_only_if_there_is_no_other_way() -> None:
    assert parted([unit("a", "b")], "abc", {"f": "abc"}) is not None
    found = parted([unit("a", "b"), unit("c")], "abc", {"f": "abc"})
    assert found is not None
    assert found.held_out == ("c",)


@pytest.mark.parametrize(
    ("units", "covers"),
    [
        ([unit("a", "b")], {"f": "ab"}),
        ([], {"f": "ab"}),
        ([unit("a"), unit("b")], {"f": "a"}),
        ([unit("a"), unit("b"), unit("c")], {"f": "ab", "g": "bc", "h": "ca"}),
        ([unit("a"), unit("b")], {"f": ""}),
    ],
)
def test_there_may_be_no_way(units: list[RemovableTests], covers: dict[str, str]) -> None:
    assert parted(units, "abc", covers) is None


def test_hopeless_are_those_with_tests_that_go_together() -> None:
    units = [unit("a", "b"), unit("c"), unit("c", "d")]
    covers = {"f": "ab", "g": "bc", "h": "e", "i": "", "j": "cd", "k": "c", "l": "ae"}
    found = unsplittable(units, {key: frozenset(tests) for key, tests in covers.items()})
    assert found == {"f", "h", "i", "k"}


def _by_trying(units: list[RemovableTests], failing: str, covers: dict[str, str]) -> bool:
    keys = [*map(frozenset, covers.values()), frozenset(failing)]
    for number in range(1, len(units) + 1):
        for chosen in itertools.combinations(units, number):
            hidden = frozenset[str]().union(*(each.ids for each in chosen))
            if all(key & hidden and key - hidden for key in keys):
                return True
    return False


def test_a_way_is_found_wherever_there_is_one() -> None:
    rng = random.Random(11)
    ways = 0
    for _ in range(400):
        failing = "abcdefghij"[: rng.randint(2, 10)]
        units = [unit(*rng.sample(failing + "pqr", rng.randint(1, 3))) for _ in range(rng.randint(1, 9))]
        sizes = [rng.randint(2, min(4, len(failing))) for _ in range(rng.randint(1, 6))]
        covers = {str(number): "".join(rng.sample(failing, size)) for number, size in enumerate(sizes)}
        found = parted(units, failing, covers, "pqr", rng.randrange(1 << 30))
        assert (found is not None) == _by_trying(units, failing, covers)
        if found is not None:
            ways += 1
            hidden = frozenset[str]().union(*(each.ids for each in units if each.cuts <= found.cuts))
            assert hidden == {*found.held_out, *found.also_hidden}
            assert all({*key} & {*found.held_out} and {*key} & {*found.visible} for key in covers.values())
    assert 100 < ways < 390


def test_large_ones_are_quick() -> None:
    rng = random.Random(5)
    failing = [f"t.py::test_{number}" for number in range(2000)]
    units = [
        unit(*failing[start : start + size]) for start, size in ((n, rng.choice((1, 1, 1, 8))) for n in range(2000))
    ]
    covers = {number: frozenset(rng.sample(failing, rng.choice((2, 5, 50, 500)))) for number in range(100)}
    splits = []
    assert effort(lambda: splits.append(split_held_out(units, failing, [], covers, rng))) < 250
    (found,) = splits
    assert found is not None
    assert len(found.held_out) == pytest.approx(600, abs=10)
