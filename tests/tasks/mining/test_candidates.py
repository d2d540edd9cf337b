import itertools
from collections.abc import Mapping

import pytest

from gametape.tasks.mining.candidates import Candidate, find_candidates, union_candidates
from gametape.tasks.mining.functions import Function
from gametape.tasks.mining.suite_analysis import CoverageMap


def function(name: str, path: str = "pkg/a.py", lines: int = 5) -> Function:
    line = sum(map(ord, name)) * 10
    return Function(path, line, name, line, line + 1, line + lines)


def named(letters: str) -> frozenset[str]:
    return frozenset(f"tests/test_a.py::test_{letter}" for letter in letters)


def reached(tests: Mapping[Function, str], *protected: Function) -> CoverageMap:
    return CoverageMap({one: named(letters) for one, letters in tests.items()}, frozenset(protected))


def found(tests: Mapping[Function, str], *protected: Function, suite: int = 20, seed: int = 0) -> list[Candidate]:
    return find_candidates(reached(tests, *protected), suite, seed)


F, G, H = function("f"), function("g", "pkg/b.py"), function("h", "pkg/c.py")


def features(tests: Mapping[Function, str], *protected: Function, suite: int = 20) -> dict[Function, set[Function]]:
    return {one.seeds[0]: {*one.functions} for one in found(tests, *protected, suite=suite)}


def test_a_feature_is_all_that_only_its_seeds_tests_reach() -> None:
    assert features({F: "abc", G: "ab", H: "abx"}) == {F: {F, G}, G: {G}, H: {G, H}}


def test_shared_code_stays() -> None:
    assert features({F: "ab", G: "cd", H: "abcd"}) == {F: {F}, G: {G}, H: {F, G, H}}


def test_what_one_test_reaches_is_no_seed_but_goes_along() -> None:
    assert features({F: "ab", G: "a"}) == {F: {F, G}}


@pytest.mark.parametrize(("suite", "expected"), [(9, set()), (10, {F}), (11, {F})])
def test_a_seed_has_at_most_two_fifths_of_the_suite(suite: int, expected: set[Function]) -> None:
    assert features({F: "abcd"}, suite=suite).keys() == expected


def test_protected_code_is_neither_seed_nor_part() -> None:
    assert features({F: "ab", G: "ab", H: "cd"}, G) == {F: {F}, H: {H}}
    assert features({F: "ab"}, F) == {}


def test_functions_with_the_same_tests_are_one_feature_led_by_the_longest() -> None:
    long = function("long", lines=9)
    (only,) = found({F: "ab", long: "ab", G: "ab"})
    assert only.seeds == (long,)
    assert only.functions == {F, G, long}


MANY = {function(f"f{number}", f"pkg/{'ab'[number % 2]}.py"): f"{'abcdefghij'[number]}z" for number in range(10)}


def test_the_order_is_the_seeds_alone() -> None:
    backwards = dict(reversed([*MANY.items()]))
    keys = [one.key for one in found(MANY)]
    assert keys == [one.key for one in found(backwards)]
    assert keys != [one.key for one in found(MANY, seed=1)]
    assert sorted(keys) == sorted(one.key for one in found(MANY, seed=1))


def test_a_key_names_the_functions_and_not_the_way_there() -> None:
    one, other = Candidate((F,), (frozenset([F, G]),)), Candidate((G,), (frozenset([G, F]),))
    assert one.key == other.key != Candidate((F,), (frozenset([F]),)).key
    assert Candidate((F, G), (frozenset([F]), frozenset([G]))).key == one.key


@pytest.mark.parametrize("size", [2, 3])
def test_unions_share_no_function_and_none_comes_twice(size: int) -> None:
    parts = found({**MANY, F: "abz", G: "cdz"})
    drawn = [*union_candidates(parts, size, seed=0)]
    assert len(drawn) > 10
    assert len({one.key for one in drawn}) == len(drawn)
    for one in drawn:
        assert len(one.seeds) == len(one.parts) == size
        assert all(seed in part for seed, part in zip(one.seeds, one.parts, strict=True))
        assert all(not first & second for first, second in itertools.combinations(one.parts, 2))


def test_unions_within_a_file_come_first() -> None:
    drawn = [len({seed.path for seed in one.seeds}) for one in union_candidates(found(MANY), 2, seed=0)]
    assert drawn[:10] == [1] * 10
    assert 2 in drawn


def test_unions_are_the_same_for_the_same_seed() -> None:
    parts = found(MANY)
    first = [one.key for one in union_candidates(parts, 2, seed=3)]
    assert first == [one.key for one in union_candidates([*reversed(parts)], 2, seed=3)]
    assert first != [one.key for one in union_candidates(parts, 2, seed=4)]


def test_too_few_parts_make_no_union() -> None:
    assert [*union_candidates(found({F: "ab", G: "abc"}), 2, seed=0)] == []
    assert [*union_candidates([], 2, seed=0)] == []
