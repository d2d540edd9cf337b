"""Decisions: oldest first, decodes first, nothing handed out twice."""

from hypothesis import given
from hypothesis import strategies as st

from gametape.engines.torch.scheduler import SequenceDemand, schedule_step

BLOCK = 4
wants = st.lists(
    st.builds(
        SequenceDemand, remaining=st.integers(0, 40), spare_tokens=st.integers(0, 3), exclusive_blocks=st.integers(0, 6)
    ),
    max_size=8,
)


def blocks_for(want, tokens):
    return max(0, -(-(tokens - want.spare_tokens) // BLOCK))


@given(wants, st.integers(0, 12), st.integers(4, 64))
def test_no_more_is_handed_out_than_there_is(asked, available, budget):
    decision = schedule_step(asked, available, BLOCK, budget)
    used = sum(map(blocks_for, asked, decision.tokens))
    assert used <= available + sum(asked[at].exclusive_blocks for at in decision.preempted)
    assert all(0 <= got <= want.remaining for got, want in zip(decision.tokens, asked, strict=True))
    assert all(decision.tokens[at] == 0 for at in decision.preempted)
    decodes = sum(want.remaining == 1 for want in asked)
    assert sum(decision.tokens) <= max(budget, decodes + budget // 4)


@given(wants, st.integers(0, 12))
def test_only_the_youngest_are_stopped_and_only_for_room(asked, available):
    decision = schedule_step(asked, available, BLOCK, 64)
    assert decision.preempted == list(range(len(asked) - 1, len(asked) - 1 - len(decision.preempted), -1))
    if sum(blocks_for(want, min(want.remaining, 64)) for want in asked) <= available:
        assert not decision.preempted


@given(wants.filter(bool), st.integers(0, 12))
def test_the_oldest_moves_on_if_the_others_room_is_enough(asked, available):
    enough = available + sum(want.exclusive_blocks for want in asked[1:]) + asked[0].spare_tokens > 0
    if asked[0].remaining and enough:
        assert schedule_step(asked, available, BLOCK, 64).tokens[0] > 0


def test_decodes_come_first_and_prompts_share_the_rest():
    asked = [SequenceDemand(100, 0, 0), SequenceDemand(1, 1, 0), SequenceDemand(50, 0, 0)]
    assert schedule_step(asked, 100, BLOCK, 32).tokens == [31, 1, 0]


def test_many_decodes_leave_a_quarter_for_prompts():
    asked = [SequenceDemand(1, 1, 0)] * 40 + [SequenceDemand(100, 0, 0)]
    assert schedule_step(asked, 100, BLOCK, 32).tokens == [1] * 40 + [8]
