"""Only sampled tokens count, only runs of a hint, and only within one turn."""

from gametape.core.segments import Segment
from gametape.train.aims import Aim
from gametape.train.leaking import leaked_share

HINT = Aim(0, 1, 0, inserted=(10, 11, 12, 13, 14))


def segment(*turns: list[int]) -> Segment:
    ids, mask, steps = [], [], []
    for number, turn in enumerate(turns, start=1):
        ids += [10, 11, 12, 13, 14, *turn]
        mask += [0] * 5 + [1] * len(turn)
        steps += [number] * (5 + len(turn))
    return Segment(ids, mask, [0.0] * len(ids), [0] * len(ids), steps)


def test_a_turn_that_repeats_the_hint_is_counted() -> None:
    assert leaked_share([segment([1, 11, 12, 13, 14], [1, 2]), segment([3], [10, 11, 12, 13])], [HINT]) == 0.5


def test_what_was_only_read_is_no_leak() -> None:
    assert leaked_share([segment([1, 2, 3, 4, 5])], [HINT]) == 0.0


def test_shorter_runs_are_no_leak_and_neither_are_runs_over_two_turns() -> None:
    split = Segment([10, 11, 12, 13], [1, 1, 1, 1], [0.0] * 4, [0] * 4, [1, 1, 2, 2])
    assert leaked_share([segment([10, 11, 12]), split], [HINT]) == 0.0


def test_without_hints_or_turns_nothing_is_known() -> None:
    assert leaked_share([segment([1])], []) is None
    assert leaked_share([], [HINT]) is None
