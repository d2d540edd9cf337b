"""Split the failing tests into visible and held-out ones."""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gametape.tasks.mining.held_out.removable_tests import RemovableTests, SuiteCut

Key = TypeVar("Key")

_SHARE = 0.3
"""The share of the failing tests to hold out: enough to ask for other inputs, and enough left to show what is asked."""
_MOST_STEPS = 600
_DRAWS = 3


@dataclass(frozen=True)
class HeldOutSplit:
    """The failing tests in two parts, and the cuts that hide one of them."""

    visible: tuple[str, ...]
    held_out: tuple[str, ...]
    also_hidden: tuple[str, ...]
    """Other tests that the same cuts hide."""
    cuts: frozenset[SuiteCut]


def unsplittable(units: Collection[RemovableTests], covers: Mapping[Key, frozenset[str]]) -> set[Key]:
    """The keys whose tests cannot be split: every unit removes all of them or none."""
    by_id: dict[str, list[RemovableTests]] = {}
    for unit in units:
        for test in unit.ids:
            by_id.setdefault(test, []).append(unit)
    return {
        key
        for key, tests in covers.items()
        if not any(not tests <= unit.ids for test in tests for unit in by_id.get(test, []))
    }


def split_held_out(
    units: Sequence[RemovableTests],
    failing: Sequence[str],
    passing: Collection[str],
    covers: Mapping[Key, frozenset[str]],
    rng: random.Random,
) -> HeldOutSplit | None:
    """Hold out about 30 % of the failing tests, so that each key has tests in both parts; None if that is impossible.

    At most half are held out if possible, and as few passing tests as possible are hidden with them.
    """
    search = _SplitSearch(units, failing, passing, covers)
    if not search.can_be:
        return None
    for most in dict.fromkeys((max(1, len(failing) // 2), len(failing) - 1)):
        draws: list[list[_Choice]] = []
        for _ in range(_DRAWS):
            choices = search.draw(rng, most)
            if choices is not None:
                draws.append(choices)
            if choices is None or not search.price(choices)[0]:
                break
        if draws:
            return search.answer(min(draws, key=search.price))
    return None


@dataclass(frozen=True)
class _Choice:
    """A unit as the set of failing tests that it hides (bits), with the other tests that it hides."""

    bits: int
    others: frozenset[str]
    cost: int
    """How many of the others pass at the start."""
    unit: RemovableTests
    concerns: tuple[int, ...]
    """The numbers of the keys with tests in it."""


class _SplitSearch:
    def __init__(
        self,
        units: Sequence[RemovableTests],
        failing: Sequence[str],
        passing: Collection[str],
        covers: Mapping[Key, frozenset[str]],
    ) -> None:
        self._failing = failing
        bit = {test: 1 << number for number, test in enumerate(failing)}
        everything = (1 << len(failing)) - 1
        wanted = {sum(bit[test] for test in tests if test in bit) for tests in covers.values()} | {everything}
        self._keys = [*_smallest(wanted)]
        self._choices = [*self._cheapest(units, bit, frozenset(passing))]
        self._options: list[list[_Choice]] = [[] for _ in self._keys]
        for choice in self._choices:
            for key in choice.concerns:
                self._options[key].append(choice)
        self.can_be = all(self._options)

    def _cheapest(
        self, units: Sequence[RemovableTests], bit: Mapping[str, int], passing: frozenset[str]
    ) -> Iterator[_Choice]:
        """The units that can be held out; of those that hide the same failing tests, the cheapest."""
        best: dict[int, tuple[int, RemovableTests]] = {}
        known = frozenset(bit)
        for unit in units:
            bits = sum(bit[test] for test in unit.ids if test in bit)
            if not bits:
                continue
            cost = len(unit.ids & passing)
            if bits not in best or cost < best[bits][0]:
                best[bits] = cost, unit
        for bits, (cost, unit) in best.items():
            concerns = tuple(number for number, key in enumerate(self._keys) if key & bits)
            if all(self._keys[number] & ~bits for number in concerns):
                yield _Choice(bits, unit.ids - known, cost, unit, concerns)

    def draw(self, rng: random.Random, most: int) -> list[_Choice] | None:
        """Units that hide a test of each key and all tests of none. The search backtracks, and gives up after
        `_MOST_STEPS`. Then units without cost are added up to the share."""
        share = min(most, max(1, round(_SHARE * len(self._failing))))
        choices: list[_Choice] = []
        hidden = [0]
        waiting = [self._ways(0, share, most, rng)]
        for _ in range(_MOST_STEPS):
            if not waiting:
                return None
            choice = waiting[-1].pop() if waiting[-1] else None
            if choice is None:
                waiting.pop()
                hidden.pop()
                if choices:
                    choices.pop()
                continue
            choices.append(choice)
            hidden.append(hidden[-1] | choice.bits)
            if all(key & hidden[-1] for key in self._keys):
                return self._filled(self._needed(choices), share, rng)
            waiting.append(self._ways(hidden[-1], share, most, rng))
        return None

    def _ways(self, hidden: int, share: int, most: int, rng: random.Random) -> list[_Choice]:
        """The units that can hide a test of the open key with the fewest units, the best last."""
        open_keys = [number for number, key in enumerate(self._keys) if not key & hidden]
        number = min(open_keys, key=lambda number: len(self._options[number]))
        ways = [choice for choice in self._options[number] if self._fits(hidden, choice, most)]

        def worth(choice: _Choice) -> tuple[float, ...]:
            too_many = max(0, (hidden | choice.bits).bit_count() - share)
            hit = sum(not self._keys[key] & hidden for key in choice.concerns)
            return -choice.cost, -too_many, hit, rng.random()

        return sorted(ways, key=worth)

    def _fits(self, hidden: int, choice: _Choice, most: int) -> bool:
        after = hidden | choice.bits
        return after.bit_count() <= most and all(self._keys[key] & ~after for key in choice.concerns)

    def _needed(self, choices: list[_Choice]) -> list[_Choice]:
        """The choices without those that have a cost and that the others make unnecessary."""
        needed = list(choices)
        for choice in sorted(choices, key=lambda choice: -choice.cost):
            rest = [other for other in needed if other is not choice]
            together = _union(rest)
            if choice.cost and all(key & together for key in self._keys):
                needed = rest
        return needed

    def _filled(self, choices: list[_Choice], share: int, rng: random.Random) -> list[_Choice]:
        hidden = _union(choices)
        free = [choice for choice in self._choices if not choice.cost]
        rng.shuffle(free)
        for choice in free:
            if hidden.bit_count() >= share:
                break
            if choice.bits & ~hidden and self._fits(hidden, choice, share):
                choices = [*choices, choice]
                hidden |= choice.bits
        return choices

    def price(self, choices: Sequence[_Choice]) -> tuple[int, float]:
        """The cost of the choices, and how far their number of tests is from the share."""
        number = _union(choices).bit_count()
        return sum(choice.cost for choice in choices), abs(number - _SHARE * len(self._failing))

    def answer(self, choices: Sequence[_Choice]) -> HeldOutSplit:
        hidden = _union(choices)
        hidden_flags = [bool(hidden >> number & 1) for number in range(len(self._failing))]
        return HeldOutSplit(
            visible=tuple(test for test, is_hidden in zip(self._failing, hidden_flags, strict=True) if not is_hidden),
            held_out=tuple(test for test, is_hidden in zip(self._failing, hidden_flags, strict=True) if is_hidden),
            also_hidden=tuple(sorted(frozenset[str]().union(*(choice.others for choice in choices)))),
            cuts=frozenset(cut for choice in choices for cut in choice.unit.cuts),
        )


def _smallest(keys: Collection[int]) -> Iterator[int]:
    """The keys that contain no other key: what splits them splits the others too."""
    smallest: list[int] = []
    for key in sorted(keys, key=int.bit_count):
        if not any(other & key == other for other in smallest):
            smallest.append(key)
            yield key


def _union(choices: Collection[_Choice]) -> int:
    bits = 0
    for choice in choices:
        bits |= choice.bits
    return bits
