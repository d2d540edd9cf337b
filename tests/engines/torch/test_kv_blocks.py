"""Blocks are never lost, never given to two, and lie beside each other where they can."""

import pytest

torch = pytest.importorskip("torch")

from hypothesis import strategies as st  # noqa: E402
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule  # noqa: E402

from gametape.engines.torch.decoder_spec import DecoderSpec  # noqa: E402
from gametape.engines.torch.kv_blocks import BlockPool  # noqa: E402
from gametape.engines.torch.prefix_index import ROOT, PrefixIndex  # noqa: E402

SPEC = DecoderSpec(layers=1, heads=1, kv_heads=1, head_dim=2, hidden=1, vocabulary=1, eps=1, qk_norm=False)


def pool(blocks=32):
    return BlockPool(SPEC, blocks, 4, torch.device("cpu"), torch.float32)


class Holders(RuleBasedStateMachine):
    """Holders take, share, make known and let go, in any order."""

    holders = Bundle("holders")

    def __init__(self):
        super().__init__()
        self.pool = pool()
        self.index = PrefixIndex(self.pool)
        self.held = {}
        self.names = 0

    @rule(target=holders, count=st.integers(1, 8))
    def take(self, count):
        blocks = self.pool.allocate(min(count, self.pool.available_blocks))
        assert len(set(blocks)) == len(blocks)
        assert not set(blocks) & {block for each in self.held.values() for block in each}
        self.names += 1
        self.held[self.names] = blocks
        return self.names

    @rule(target=holders, other=holders)
    def share(self, other):
        self.pool.acquire(self.held[other])
        self.names += 1
        self.held[self.names] = list(self.held[other])
        return self.names

    @rule(holder=holders, tokens=st.tuples(st.integers(0, 3)))
    def make_known(self, holder, tokens):
        for block in self.held[holder]:
            self.index.add(ROOT, (*tokens, block), block, 0)

    @rule(holder=consumes(holders))
    def let_go(self, holder):
        self.pool.release(self.held.pop(holder))

    @rule()
    def find(self):
        for block in range(32):
            entry = self.index.find_full_block(ROOT, (0, block))
            assert entry is None or entry.block == block

    @invariant()
    def counts_agree(self):
        assert self.pool.held_blocks == len({block for each in self.held.values() for block in each})


TestHolders = Holders.TestCase


@pytest.mark.parametrize("size", [32, 31])
def test_a_sequence_that_grows_gets_neighbours(size):
    blocks = pool(size)
    rows = [blocks.allocate(1) for _ in range(4)]
    for _ in range(6):
        for row in rows:
            row.extend(blocks.allocate(1, row[-1]))
    assert sorted(row[0] for row in rows) == [0, 8, 16, 24]
    assert all(row == list(range(row[0], row[0] + 7)) for row in rows)


def test_the_longest_unused_is_given_away_first_and_the_end_of_a_sequence_before_its_beginning():
    blocks = pool(8)
    index = PrefixIndex(blocks)
    first, second = blocks.allocate(4), blocks.allocate(4)
    for at, block in enumerate([*first, *second]):
        index.add(ROOT, (at,) * 4, block, 0)
    blocks.release(first)
    blocks.release(second)
    assert (blocks.held_blocks, blocks.available_blocks) == (0, 8)
    assert blocks.allocate(1) == [first[-1]]
    assert index.find_full_block(ROOT, (0,) * 4).block == first[0]
    assert index.find_full_block(ROOT, (3,) * 4) is None


def test_copies_are_of_the_first_rows():
    blocks = pool(2)
    blocks.keys_LBTGD[:] = torch.arange(16.0).view(1, 2, 4, 1, 2)
    blocks.copy_rows(0, 1, 3)
    assert blocks.keys_LBTGD[0, 1, :, 0, 0].tolist() == [0, 2, 4, 14]
