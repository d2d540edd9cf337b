"""Which failing tests the agent sees, and which are kept from it."""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gametape.tasks.mining.held_out.removable_tests import RemovableTests, SuiteCut

Key = TypeVar("Key")

_SHARE = 0.3
"""Of the failing tests, about so many are held out: enough to ask for other inputs, not so many that nobody can tell
what is asked."""
_MOST_STEPS = 600
_DRAWS = 3


@dataclass(frozen=True)
class HeldOutSplit:
    """The failing tests in two parts, and what it takes that one of them is not seen."""

    visible: tuple[str, ...]
    held_out: tuple[str, ...]
    also_hidden: tuple[str, ...]
    """Other tests that can be seen no more either, and so cannot be asked for."""
    cuts: frozenset[SuiteCut]


def unsplittable(units: Collection[RemovableTests], covers: Mapping[Key, frozenset[str]]) -> set[Key]:
    """Those with tests that cannot be parted: whatever is taken out takes all of them or none."""
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
    """Hold out about a third of the failing tests, so that each key has some in both parts; None if there is no way.

    At most half are held out where that can be had, and of the passing tests as few are lost as can be.
    """
    problem = _Problem(units, failing, passing, covers)
    if not problem.can_be:
        return None
    for most in dict.fromkeys((max(1, len(failing) // 2), len(failing) - 1)):
        found: list[list[_Choice]] = []
        for _ in range(_DRAWS):
            chosen = problem.draw(rng, most)
            if chosen is not None:
                found.append(chosen)
            if chosen is None or not problem.price(chosen)[0]:
                break
        if found:
            return problem.answer(min(found, key=problem.price))
    return None


@dataclass(frozen=True)
class _Choice:
    """A unit, as the set of failing tests that it takes (bits), and the others that it takes along."""

    bits: int
    others: frozenset[str]
    cost: int
    """How many of the others could have been asked for."""
    unit: RemovableTests
    concerns: tuple[int, ...]
    """The keys with tests in it, by number."""


class _Problem:
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
        """The units that could be held out, of those that hide the same the one that costs least."""
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
        """Units that hide something of each key and all of none: the search turns back where it is stuck, and gives up
        after a number of steps. Then more of them, while that costs nothing, up to the share."""
        share = min(most, max(1, round(_SHARE * len(self._failing))))
        chosen: list[_Choice] = []
        hidden = [0]
        waiting = [self._ways(0, share, most, rng)]
        for _ in range(_MOST_STEPS):
            if not waiting:
                return None
            choice = waiting[-1].pop() if waiting[-1] else None
            if choice is None:
                waiting.pop()
                hidden.pop()
                if chosen:
                    chosen.pop()
                continue
            chosen.append(choice)
            hidden.append(hidden[-1] | choice.bits)
            if all(key & hidden[-1] for key in self._keys):
                return self._filled(self._needed(chosen), share, rng)
            waiting.append(self._ways(hidden[-1], share, most, rng))
        return None

    def _ways(self, hidden: int, share: int, most: int, rng: random.Random) -> list[_Choice]:
        """The units that can hide something of a key with few of them, the best last."""
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

    def _needed(self, chosen: list[_Choice]) -> list[_Choice]:
        """Without those that cost something and that the others make up for."""
        kept = list(chosen)
        for choice in sorted(chosen, key=lambda choice: -choice.cost):
            rest = [other for other in kept if other is not choice]
            together = _union(rest)
            if choice.cost and all(key & together for key in self._keys):
                kept = rest
        return kept

    def _filled(self, chosen: list[_Choice], share: int, rng: random.Random) -> list[_Choice]:
        hidden = _union(chosen)
        free = [choice for choice in self._choices if not choice.cost]
        rng.shuffle(free)
        for choice in free:
            if hidden.bit_count() >= share:
                break
            if choice.bits & ~hidden and self._fits(hidden, choice, share):
                chosen = [*chosen, choice]
                hidden |= choice.bits
        return chosen

    def price(self, chosen: Sequence[_Choice]) -> tuple[int, float]:
        """What is lost, and how far the number is from the share."""
        number = _union(chosen).bit_count()
        return sum(choice.cost for choice in chosen), abs(number - _SHARE * len(self._failing))

    def answer(self, chosen: Sequence[_Choice]) -> HeldOutSplit:
        hidden = _union(chosen)
        held = [bool(hidden >> number & 1) for number in range(len(self._failing))]
        return HeldOutSplit(
            visible=tuple(test for test, away in zip(self._failing, held, strict=True) if not away),
            held_out=tuple(test for test, away in zip(self._failing, held, strict=True) if away),
            also_hidden=tuple(sorted(frozenset[str]().union(*(choice.others for choice in chosen)))),
            cuts=frozenset(cut for choice in chosen for cut in choice.unit.cuts),
        )


def _smallest(keys: Collection[int]) -> Iterator[int]:
    """Those that hold no other: what parts them parts the others too."""
    found: list[int] = []
    for key in sorted(keys, key=int.bit_count):
        if not any(other & key == other for other in found):
            found.append(key)
            yield key


def _union(chosen: Collection[_Choice]) -> int:
    bits = 0
    for choice in chosen:
        bits |= choice.bits
    return bits
