"""Whatever lines have in common is one node, and each line can be read off its leaf."""

from hypothesis import given
from hypothesis import strategies as st

from gametape.train.packing import Trie, pack_nodes

LINES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8), min_size=1, max_size=8)


def read(packed, node):
    return packed.ids_N[packed.paths[node]].tolist()


@given(LINES, st.data())
def test_every_line_can_be_read_off_its_leaf_and_so_can_what_hangs_there(lines, data):
    trie = Trie()
    leaves = trie.add_sequences(lines)
    number = data.draw(st.integers(0, len(lines) - 1))
    at = data.draw(st.integers(1, len(lines[number])))
    branch = trie.add_branch(leaves[number], at, [7, 8], detached=True)
    packed = pack_nodes(trie.nodes)
    assert [read(packed, leaf) for leaf in leaves] == lines
    assert read(packed, branch) == [*lines[number][:at], 7, 8]


@given(LINES)
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
