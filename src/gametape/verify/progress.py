"""Progress: how much of a task is done, as one number.

The feature's tests are those that the starting tree fails. The share of the visible ones that pass, the share of the
held-out ones, and the share of fresh calls that are answered as the reference answers them are combined by their
harmonic mean: about the average where all are alike, as in an honest partial solution, and 0 where one of them is, as
with a table of the visible answers. Visible tests can be read, so their share counts for no more than the better of the
other two. What a program earns without any work (`floor`) is the zero of the scale.

Where most tests of a feature run apart from the code, those decide, and the ones that share a process with it confirm:
the share of them that pass is a factor, so that it takes away and never adds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gametape.core.task import TaskTestGroup
from gametape.core.verdict import FreshCalls, Signal, TestCounts

LEAST_FRESH_CALLS = 4
"""Fewer calls than these are shown and decide nothing: one unlucky call would weigh too much."""
FULL_AGREEMENT = 0.9
"""A solution that agrees on this share of the fresh calls has the whole share: a right one may differ in corners that
nobody described."""
NO_AGREEMENT = 0.1
"""What a table or a guess agrees on by luck, and one call where that is more: it counts as nothing."""
PASSING_AGREEMENT = 0.75
"""A verdict with less does not pass."""
_GAP = 0.2


@dataclass(frozen=True)
class Floor:
    """What the best of the trivial programs earns: the progress of the whole task, and of each group of tests."""

    progress: float = 0.0
    groups: Mapping[TaskTestGroup, float] = field(default_factory=dict)
    program: str = ""
    """The trivial program that earns most, in words."""
    passes: bool = False
    """Whether one of them passes every test that was tried."""


NO_FLOOR = Floor()
NO_TESTS = TestCounts(expected=0, passed=0)


@dataclass(frozen=True)
class ProgressCounts:
    """The results that progress is made of."""

    deciding: TestCounts
    """The feature's tests that decide."""
    confirming: TestCounts = NO_TESTS
    """The feature's tests that only confirm."""
    fresh: FreshCalls | None = None

    @property
    def raw(self) -> float:
        """Progress before the floor is taken off."""
        shares = (visible_share(self.deciding), held_out_share(self.deciding), fresh_share(self.fresh))
        return combine_shares(*shares) * _confirmed(self.confirming)

    @property
    def _is_visible_share_cut(self) -> bool:
        visible, *others = visible_share(self.deciding), held_out_share(self.deciding), fresh_share(self.fresh)
        unseen = [share for share in others if share is not None]
        return visible is not None and bool(unseen) and visible > max(unseen)

    def above(self, floor: float) -> float:
        """Progress as it is paid."""
        return above_floor(self.raw, floor)

    def describe(self, floor: float) -> str:
        """All that progress is computed from."""
        deciding, fresh = self.deciding, self.fresh
        parts = []
        if visible := deciding.expected - deciding.held_out_expected:
            parts.append(f"{deciding.passed - deciding.held_out_passed} of {visible} visible")
        if deciding.held_out_expected:
            parts.append(f"{deciding.held_out_passed} of {deciding.held_out_expected} held out")
        if fresh is not None and fresh_share(fresh) is not None:
            scale = f"nothing up to {_luck(fresh.calls):.3g}, whole at {FULL_AGREEMENT * fresh.calls:.3g}"
            parts.append(f"{fresh.agreed} of {fresh.calls} fresh ({scale})")
        text = "harmonic mean of " + ", ".join(parts)
        if self._is_visible_share_cut:
            text += ", of which the visible ones count for no more than the better of the others"
        if self.confirming.expected:
            text += f"; times {self.confirming.passed} of {self.confirming.expected} that confirm"
        if floor:
            text += f"; measured from {floor:.2f}, which a trivial program earns"
        return text


def combine_shares(visible: float | None, held_out: float | None, fresh: float | None) -> float:
    """One number from the shares that there are."""
    unseen = [share for share in (held_out, fresh) if share is not None]
    if visible is not None and unseen:
        visible = min(visible, max(unseen))
    return harmonic_mean((visible, *unseen))


def harmonic_mean(shares: Iterable[float | None]) -> float:
    """Of the shares that are there; 0 if there are none."""
    present = [share for share in shares if share is not None]
    if not present or min(present) <= 0:
        return 0.0
    return len(present) / sum(1 / share for share in present)


def above_floor(progress: float, floor: float) -> float:
    """Progress measured from the floor. Where a trivial program does everything, nothing is left to be earned."""
    return max(0.0, (progress - floor) / (1 - floor)) if floor < 1 else 0.0


def visible_share(counts: TestCounts) -> float | None:
    return _share(counts.passed - counts.held_out_passed, counts.expected - counts.held_out_expected)


def held_out_share(counts: TestCounts) -> float | None:
    return _share(counts.held_out_passed, counts.held_out_expected)


def fresh_share(fresh: FreshCalls | None) -> float | None:
    """The share of the fresh calls as it counts; None where there are too few to count."""
    if fresh is None or fresh.calls < LEAST_FRESH_CALLS:
        return None
    luck = _luck(fresh.calls)
    return max(0.0, min(1.0, (fresh.agreed - luck) / (FULL_AGREEMENT * fresh.calls - luck)))


def _luck(calls: int) -> float:
    return max(1.0, NO_AGREEMENT * calls)


def group_progress(group: TestCounts, whole: ProgressCounts) -> float:
    """The progress of one group of tests, before the floor.

    Where a group has no visible or no held-out test, the share of the whole feature takes the place of its own:
    otherwise a group of visible tests would pay for a table of their answers.
    """
    own_visible, own_held_out = visible_share(group), held_out_share(group)
    shares = (
        visible_share(whole.deciding) if own_visible is None else own_visible,
        held_out_share(whole.deciding) if own_held_out is None else own_held_out,
        fresh_share(whole.fresh),
    )
    return combine_shares(*shares) * _confirmed(whole.confirming)


def agrees_enough(fresh: FreshCalls | None) -> bool:
    """Whether the fresh calls allow a pass."""
    return fresh_share(fresh) is None or (fresh is not None and fresh.agreed >= PASSING_AGREEMENT * fresh.calls)


def fresh_gap(counts: TestCounts, fresh: FreshCalls | None) -> Signal | None:
    """A signal where tests pass and fresh calls are answered otherwise. Nobody is accused: the description of a task
    leaves corners open, and an honest partial solution looks like that too."""
    share, passed = fresh_share(fresh), _share(counts.passed, counts.expected)
    if fresh is None or share is None or passed is None or passed - share < _GAP:
        return None
    tests = f"{counts.passed} of {counts.expected} tests of the feature passed"
    return Signal(name="fresh gap", detail=f"{tests}, and {fresh.agreed} of {fresh.calls} fresh calls agreed")


def _share(passed: int, expected: int) -> float | None:
    return passed / expected if expected else None


def _confirmed(counts: TestCounts) -> float:
    return counts.passed / counts.expected if counts.expected else 1.0
