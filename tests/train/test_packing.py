"""Packed trees: positions, predecessors, shared prefixes and padding."""

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from gametape.train.attention_plan import AttentionSpan, make_buckets  # noqa: E402
from gametape.train.packing import (  # noqa: E402
    TokenNode,
    Trie,
    pack_nodes,
)


def test_positions_and_predecessors_follow_the_line_and_not_the_packing():
    packed = pack_nodes(
        [
            TokenNode([5, 6, 7]),
            TokenNode([8, 9], 0),
            TokenNode([1], 0, at=1, detached=True),
            TokenNode([2, 3], 0, at=2),
            TokenNode([4]),
        ]
    )
    assert packed.ids_N.tolist() == [5, 6, 7, 8, 9, 2, 3, 4, 1]
    assert packed.positions_N.tolist() == [0, 1, 2, 3, 4, 2, 3, 0, 1]
    assert packed.predecessor_N.tolist() == [-1, 0, 1, 2, 3, 1, 5, -1, 0]
    assert packed.rows == (slice(0, 3), slice(3, 5), slice(8, 9), slice(5, 7), slice(7, 8))
    assert [line.tolist() for line in packed.paths] == [[0, 1, 2], [0, 1, 2, 3, 4], [0, 8], [0, 1, 5, 6], [7]]
    assert packed.gradient_rows == 8


def test_a_child_of_none_of_its_parents_tokens_is_its_sibling():
    packed = pack_nodes([TokenNode([1, 2]), TokenNode([3, 4], 0), TokenNode([5], 1, at=0)])
    assert packed.positions_N.tolist() == [0, 1, 2, 3, 2]
    assert packed.paths[2].tolist() == [0, 1, 4]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([TokenNode([])], "no tokens"),
        ([TokenNode([1], parent=0)], "does not come before"),
        ([TokenNode([1]), TokenNode([2], parent=-1)], "does not come before"),
        ([TokenNode([1]), TokenNode([2], 0, at=2)], "after 2 of 1 tokens"),
        ([TokenNode([1], detached=True), TokenNode([2], 0)], "is detached"),
    ],
)
def test_what_is_no_tree_is_refused(nodes, message):
    with pytest.raises(ValueError, match=message):
        pack_nodes(nodes)


def test_many_short_lines_are_few_calls_and_a_long_one_is_not_padded():
    lines = [TokenNode(range(190 + number % 40)) for number in range(64)]
    assert len(pack_nodes(lines).plan.own) <= 3
    mixed = pack_nodes([*lines, TokenNode(range(5000))]).plan.own
    assert tuple(mixed[0].queries_BS.shape) == (1, 5000)


def test_the_rollouts_of_a_group_ask_their_prompt_in_one_call():
    packed = pack_nodes([TokenNode(range(50)), *(TokenNode(range(10 + number), 0) for number in range(8))])
    assert [tuple(bucket.queries_BS.shape) for bucket in packed.plan.context] == [(1, 108)]


def test_every_query_is_real_in_exactly_one_bucket_and_padding_is_bounded():
    lengths = [1, 2, 17, 18, 40, 41, 300, 330, 337, 2000]
    ends = torch.tensor(lengths).cumsum(0).tolist()
    rows = [torch.arange(end - length, end) for end, length in zip(ends, lengths, strict=True)]
    buckets = make_buckets([AttentionSpan(span_rows, span_rows) for span_rows in rows], causal=True)
    rows_M = torch.cat([bucket.rows_M for bucket in buckets])
    assert sorted(rows_M.tolist()) == list(range(ends[-1]))
    for bucket in buckets:
        batch, longest = bucket.queries_BS.shape
        assert batch * longest - len(bucket.rows_M) <= batch * max(16, longest // 8)


def test_padded_keys_are_hidden_where_causality_does_not_hide_them():
    stretches = [AttentionSpan(torch.arange(4), torch.arange(number)) for number in (9, 20)]
    (bucket,) = make_buckets(stretches, causal=False)
    assert bucket.keys_BK.shape == (2, 24)
    assert (~bucket.hidden_BK).sum(-1).tolist() == [20, 9]
    (causal,) = make_buckets(
        [AttentionSpan(torch.arange(4), torch.arange(4)), AttentionSpan(torch.arange(2), torch.arange(2))], causal=True
    )
    assert causal.hidden_BK is None


SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8), min_size=1, max_size=8)


def read_sequence(packed, node):
    return packed.ids_N[packed.paths[node]].tolist()


@given(SEQUENCES, st.data())
def test_every_line_can_be_read_off_its_leaf_and_so_can_what_hangs_there(lines, data):
    trie = Trie()
    leaves = trie.add_sequences(lines)
    number = data.draw(st.integers(0, len(lines) - 1))
    at = data.draw(st.integers(1, len(lines[number])))
    branch = trie.add_branch(leaves[number], at, [7, 8], detached=True)
    packed = pack_nodes(trie.nodes)
    assert [read_sequence(packed, leaf) for leaf in leaves] == lines
    assert read_sequence(packed, branch) == [*lines[number][:at], 7, 8]


@given(SEQUENCES)
def test_nothing_is_computed_twice_but_the_last_token_of_a_line(lines):
    trie = Trie()
    trie.add_sequences(lines)
    prefixes = {tuple(line[:at]) for line in lines for at in range(1, len(line))}
    assert len(pack_nodes(trie.nodes).ids_N) <= len(prefixes) + len(lines)


def test_other_families_are_not_looked_at():
    trie = Trie()
    trie.add_sequences([[1, 2, 3]])
    trie.add_sequences([[1, 2, 3]])
    assert len(pack_nodes(trie.nodes).ids_N) == 6


def test_frozen_rows_come_first_and_only_they_may_come_before_others():
    trie = Trie()
    (prefix,) = trie.add_sequences([[1, 2, 3, 4]], frozen=True)
    tail = trie.add_branch(prefix, 4, [5, 6])
    hinted = trie.add_branch(tail, 3, [7, 8], detached=True)
    packed = pack_nodes(trie.nodes)
    assert (packed.frozen_rows, packed.gradient_rows, len(packed.ids_N)) == (4, 2, 8)
    assert packed.ids_N.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert packed.paths[tail].tolist() == [0, 1, 2, 3, 4, 5]
    assert packed.paths[hinted].tolist() == [0, 1, 2, 6, 7]
    with pytest.raises(ValueError, match="is frozen"):
        pack_nodes([TokenNode([1]), TokenNode([2], parent=0, frozen=True)])


def test_prompts_share_long_instructions_and_no_short_ones():
    long, trie = list(range(100)), Trie()
    first, second = trie.add_sequences([[*long, 201, 202]]), trie.add_sequences([[*long, 301], [*long, 302]])
    packed = pack_nodes(trie.nodes)
    assert len(packed.ids_N) == 100 + 2 + 2
    assert [packed.paths[leaf][-1] for leaf in (*first, *second)] == [101, 102, 103]
