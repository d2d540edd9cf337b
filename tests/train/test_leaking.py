"""Only sampled tokens count, only runs of a hint, and only within one turn."""

from gametape.core.token_segments import TokenSegment
from gametape.train.alarms import hint_leak_rate
from gametape.train.rollouts import DistillTarget

HINT = DistillTarget(0, 1, 0, hint_ids=(10, 11, 12, 13, 14))


def segment(*turns: list[int]) -> TokenSegment:
    ids, mask, steps = [], [], []
    for number, turn in enumerate(turns, start=1):
        ids += [10, 11, 12, 13, 14, *turn]
        mask += [0] * 5 + [1] * len(turn)
        steps += [number] * (5 + len(turn))
    return TokenSegment(ids, mask, [0.0] * len(ids), [0] * len(ids), steps)


def test_a_turn_that_repeats_the_hint_is_counted() -> None:
    assert hint_leak_rate([segment([1, 11, 12, 13, 14], [1, 2]), segment([3], [10, 11, 12, 13])], [HINT]) == 0.5


def test_what_was_only_read_is_no_leak() -> None:
    assert hint_leak_rate([segment([1, 2, 3, 4, 5])], [HINT]) == 0.0


def test_shorter_runs_are_no_leak_and_neither_are_runs_over_two_turns() -> None:
    split = TokenSegment([10, 11, 12, 13], [1, 1, 1, 1], [0.0] * 4, [0] * 4, [1, 1, 2, 2])
    assert hint_leak_rate([segment([10, 11, 12]), split], [HINT]) == 0.0


def test_without_hints_or_turns_nothing_is_known() -> None:
    assert hint_leak_rate([segment([1])], []) is None
    assert hint_leak_rate([], [HINT]) is None
