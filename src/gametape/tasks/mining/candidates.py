"""What to delete together: a seed, and all code that only the seed's tests reach."""

import hashlib
import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gametape.tasks.mining.functions import Function
from gametape.tasks.mining.suite_analysis import CoverageMap

MIN_TESTS = 2
MAX_TEST_SHARE = 0.4
"""Of the suite: a function that more tests reach is no feature but the ground they stand on."""


@dataclass(frozen=True)
class Candidate:
    """One or several seeds with everything they dominate, chosen before any test ran without it."""

    seeds: tuple[Function, ...]
    parts: tuple[frozenset[Function], ...]
    """What goes with each seed."""

    @property
    def functions(self) -> frozenset[Function]:
        return frozenset[Function]().union(*self.parts)

    @property
    def key(self) -> str:
        """Names this candidate: the same functions give the same key, whichever seed led there."""
        whole = "\n".join(sorted(map(str, self.functions)))
        return hashlib.sha256(whole.encode()).hexdigest()[:12]

    def __str__(self) -> str:
        return " + ".join(seed.name for seed in self.seeds)


def find_candidates(coverage_map: CoverageMap, tests: int, seed: int) -> list[Candidate]:
    """Every feature of a code base with so many tests, in an order that only the seed decides.

    Functions that just the same tests reach are one feature; the longest of them is its seed.
    """
    free = {one: ids for one, ids in coverage_map.tests.items() if one not in coverage_map.protected}
    found: dict[frozenset[Function], Candidate] = {}
    for function in sorted(free, key=lambda one: (one.body_line - one.last_line, one)):
        if MIN_TESTS <= len(free[function]) <= MAX_TEST_SHARE * tests:
            feature = frozenset(one for one, ids in free.items() if ids <= free[function])
            found.setdefault(feature, Candidate((function,), (feature,)))
    ordered = sorted(found.values(), key=lambda one: one.seeds)
    random.Random(seed).shuffle(ordered)
    return ordered


def union_candidates(valid: Iterable[Candidate], size: int, seed: int) -> Iterator[Candidate]:
    """Unions of features that share no function, drawn without end in sight: each pair of parts occurs once.

    Neighbours come first: parts from one file make a task that hangs together.
    """
    parts = sorted(valid, key=lambda one: one.key)
    rng = random.Random(seed)
    rng.shuffle(parts)
    seen: set[frozenset[Function]] = set()
    for near in (True, False):
        for distance in range(1, len(parts)):
            for index, first in enumerate(parts):
                group = _group(
                    first, parts[index + distance :] + parts[: max(0, index + distance - len(parts))], size, near
                )
                whole = frozenset(itertools.chain.from_iterable(one.functions for one in group))
                if len(group) == size and whole not in seen:
                    seen.add(whole)
                    yield Candidate(tuple(one.seeds[0] for one in group), tuple(one.functions for one in group))


def _group(first: Candidate, others: list[Candidate], size: int, near: bool) -> list[Candidate]:
    """The first that go with it: no function in two of them and, when they have to be near, a file in common."""
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
    return {one.path for one in candidate.functions}
