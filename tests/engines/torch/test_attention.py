"""Attention on a CPU against attention written plainly, over blocks that lie anyhow."""

import shutil

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from gametape.engines.torch.attention import cpu, reference  # noqa: E402
from gametape.engines.torch.attention.block_runs import BlockRun, group_strided, sequence_runs, shared_runs  # noqa: E402
from gametape.engines.torch.attention.interface import SequenceSpan  # noqa: E402
from gametape.engines.torch.decoder_spec import DecoderSpec  # noqa: E402
from gametape.engines.torch.kv_blocks import BlockPool  # noqa: E402

BLOCK = 4
SPEC = DecoderSpec(layers=2, heads=6, kv_heads=2, head_dim=16, hidden=1, vocabulary=1, eps=1, qk_norm=False)


@st.composite
def batches(draw):
    """Sequences of several lengths: some begin alike, some lie in a row, some are scattered."""
    blocks = draw(st.permutations(range(96))) if draw(st.booleans()) else list(range(96))
    common = [blocks.pop(0) for _ in range(draw(st.integers(0, 8)))]
    spans, start = [], 0
    for _ in range(draw(st.integers(1, 8))):
        head = common if draw(st.booleans()) else []
        count = draw(st.sampled_from([1, 1, 1, 2, 7]))
        past = len(head) * BLOCK + draw(st.integers(0, 5 * BLOCK))
        gap = draw(st.integers(0, 2))
        own = [blocks.pop(0) for _ in range(-(-(past + count) // BLOCK) - len(head))]
        del blocks[:gap]
        spans.append(SequenceSpan(start, count, past, [*head, *own]))
        start += count
    return spans


@settings(deadline=None, max_examples=60)
@given(batches(), st.booleans(), st.integers(0, 1000))
def test_any_batch_is_attended_to_as_the_reference_does(spans, compiled, seed):
    """By our own kernel or, as without a compiler, by torch's."""
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setattr(cpu, "load_decode_kernels", lambda pool: None)
        compare_with_the_reference(spans, seed)


def compare_with_the_reference(spans, seed):
    generator = torch.Generator().manual_seed(seed)
    pools = [BlockPool(SPEC, 128, BLOCK, torch.device("cpu"), torch.float32) for _ in range(2)]
    for name in ("keys_LBTGD", "values_LBTGD"):
        filled = torch.randn(getattr(pools[0], name).shape, generator=generator)
        for pool in pools:
            getattr(pool, name).copy_(filled)
    tokens = sum(span.count for span in spans)
    q_NHD = torch.randn(tokens, 6, 16, generator=generator)
    k_NGD, v_NGD = torch.randn(2, tokens, 2, 16, generator=generator)
    for layer in range(2):
        outs = [
            planner(pool, spans)(layer, q_NHD, k_NGD, v_NGD)
            for planner, pool in zip((cpu.plan, reference.plan), pools, strict=True)
        ]
        torch.testing.assert_close(outs[0], outs[1], atol=1e-5, rtol=0)
    torch.testing.assert_close(pools[0].keys_LBTGD, pools[1].keys_LBTGD)


def test_what_lies_behind_a_sequence_does_not_matter():
    pool = BlockPool(SPEC, 16, BLOCK, torch.device("cpu"), torch.float32)
    spans = [SequenceSpan(0, 1, 3, [0]), SequenceSpan(1, 1, 9, [4, 5, 6]), SequenceSpan(2, 1, 5, [8, 9])]
    q_NHD, k_NGD, v_NGD = torch.randn(3, 6, 16), torch.randn(3, 2, 16), torch.randn(3, 2, 16)
    first = cpu.plan(pool, spans)(0, q_NHD, k_NGD, v_NGD)
    for unused in ([1, 2, 3], [7], [10, 11]):
        pool.keys_LBTGD[:, unused] = 1e6
        pool.values_LBTGD[:, unused] = 1e6
    torch.testing.assert_close(cpu.plan(pool, spans)(0, q_NHD, k_NGD, v_NGD), first)


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_long_sequence_is_cut_where_its_own_length_says():
    """Exactly the same alone and in company, and what the reference gives."""
    pool = BlockPool(SPEC, 512, BLOCK, torch.device("cpu"), torch.float32)
    generator = torch.Generator().manual_seed(1)
    for filled in (pool.keys_LBTGD, pool.values_LBTGD):
        filled.normal_(generator=generator)
    spans = [
        SequenceSpan(0, 1, 255, range(64)),
        SequenceSpan(1, 1, 256, range(100, 165)),
        SequenceSpan(2, 1, 900, range(200, 426)),
    ]
    q_NHD, k_NGD, v_NGD = torch.randn(3, 6, 16), torch.randn(3, 2, 16), torch.randn(3, 2, 16)
    together = cpu.plan(pool, spans)(0, q_NHD, k_NGD, v_NGD)
    torch.testing.assert_close(together, reference.plan(pool, spans)(0, q_NHD, k_NGD, v_NGD), atol=1e-5, rtol=0)
    for at, span in enumerate(spans):
        alone = [SequenceSpan(0, 1, span.past, span.blocks)]
        row = slice(at, at + 1)
        assert torch.equal(cpu.plan(pool, alone)(0, q_NHD[row], k_NGD[row], v_NGD[row]), together[row])


def test_neighbours_are_one_run():
    assert sequence_runs(4, 7, [2, 3, 4, 9, 8], 0, 18) == [
        BlockRun((7,), 8, 12),
        BlockRun((7,), 36, 4),
        BlockRun((7,), 32, 2),
    ]
    assert sequence_runs(4, 7, [2, 3, 4, 9, 8], 8, 16) == [BlockRun((7,), 16, 4), BlockRun((7,), 36, 4)]


def test_what_several_begin_with_is_read_once():
    same = [5, 6, 7, 8, 9]
    spans = [
        SequenceSpan(0, 1, 21, [*same, 1]),
        SequenceSpan(1, 1, 22, [*same, 2]),
        SequenceSpan(2, 1, 30, [*same[:3], 20, 21, 22, 23, 24]),
    ]
    assert shared_runs(4, spans) == [BlockRun((0, 1), 20, 20)]


def test_runs_at_even_distances_are_one_call():
    parts = [BlockRun((at,), 64 * at, 10 + at) for at in range(5)] + [BlockRun((9,), 7, 3), BlockRun((8,), 7, 4)]
    rows = group_strided(parts, 1000)
    assert sorted(len(row.runs) for row in rows) == [1, 1, 5]
    assert sorted(part.members[0] for row in rows for part in row.runs) == [0, 1, 2, 3, 4, 8, 9]
    assert max(rows, key=lambda row: len(row.runs)).length == 14


def test_no_view_reaches_past_the_end():
    assert [len(row.runs) for row in group_strided([BlockRun((0,), 0, 60), BlockRun((1,), 64, 10)], 80)] == [1, 1]
