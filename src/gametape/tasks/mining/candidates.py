"""Candidates for deletion: a seed function, with all functions that only the seed function's tests reach."""

import hashlib
import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gametape.tasks.mining.functions import Function
from gametape.tasks.mining.suite_analysis import CoverageMap

MIN_TESTS = 2
MAX_TEST_SHARE = 0.4
"""The largest share of the suite that may reach a seed function: what more tests reach is infrastructure."""


@dataclass(frozen=True)
class Candidate:
    """One or several seed functions with everything they dominate, chosen before any test has run without it."""

    seeds: tuple[Function, ...]
    parts: tuple[frozenset[Function], ...]
    """By seed function: the functions that are deleted with it, itself included."""

    @property
    def functions(self) -> frozenset[Function]:
        return frozenset[Function]().union(*self.parts)

    @property
    def key(self) -> str:
        """A digest of the functions: the same functions give the same key, whatever the seed function."""
        whole = "\n".join(sorted(map(str, self.functions)))
        return hashlib.sha256(whole.encode()).hexdigest()[:12]

    def __str__(self) -> str:
        return " + ".join(seed.name for seed in self.seeds)


def find_candidates(coverage_map: CoverageMap, tests: int, seed: int) -> list[Candidate]:
    """Every feature of a project with so many tests, in an order that only `seed`, the random seed, decides.

    Functions that exactly the same tests reach are one feature; the longest of them is its seed function.
    """
    free = {other: ids for other, ids in coverage_map.tests.items() if other not in coverage_map.protected}
    by_functions: dict[frozenset[Function], Candidate] = {}
    for function in sorted(free, key=lambda other: (other.body_line - other.last_line, other)):
        if MIN_TESTS <= len(free[function]) <= MAX_TEST_SHARE * tests:
            feature = frozenset(other for other, ids in free.items() if ids <= free[function])
            by_functions.setdefault(feature, Candidate((function,), (feature,)))
    ordered = sorted(by_functions.values(), key=lambda other: other.seeds)
    random.Random(seed).shuffle(ordered)
    return ordered


def union_candidates(valid: Iterable[Candidate], size: int, seed: int) -> Iterator[Candidate]:
    """Unions of `size` features that share no function, each union once, in an order that `seed` decides.

    Features with a file in common come first, because they make a more coherent task.
    """
    parts = sorted(valid, key=lambda candidate: candidate.key)
    rng = random.Random(seed)
    rng.shuffle(parts)
    seen: set[frozenset[Function]] = set()
    for near in (True, False):
        for distance in range(1, len(parts)):
            for index, first in enumerate(parts):
                group = _group(
                    first, parts[index + distance :] + parts[: max(0, index + distance - len(parts))], size, near
                )
                functions = frozenset(itertools.chain.from_iterable(candidate.functions for candidate in group))
                if len(group) == size and functions not in seen:
                    seen.add(functions)
                    yield Candidate(
                        tuple(candidate.seeds[0] for candidate in group),
                        tuple(candidate.functions for candidate in group),
                    )


def _group(first: Candidate, others: list[Candidate], size: int, near: bool) -> list[Candidate]:
    """The candidate with the first others that share no function with it and, if `near`, share a file with it."""
    group = [first]
    taken = set(first.functions)
    for other in others:
        if len(group) == size:
            break
        if taken & other.functions or (near and not _files(first) & _files(other)):
            continue
        group.append(other)
        taken |= other.functions
    return group


def _files(candidate: Candidate) -> set[str]:
    return {function.path for function in candidate.functions}
