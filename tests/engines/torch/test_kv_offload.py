"""What had to leave the device comes back by a copy, and is what was there."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from gametape.core.messages import Sampling  # noqa: E402
from gametape.engines.torch.decoder_spec import DecoderSpec  # noqa: E402
from gametape.engines.torch.kv_blocks import BlockPool  # noqa: E402
from gametape.engines.torch.kv_offload import KVOffload  # noqa: E402
from gametape.engines.torch.prefix_index import PrefixEntry  # noqa: E402

from .networks import GREEDY, VOCABULARY, ask, check, network, plain, run, stepper  # noqa: E402
from .recorded import stepper_in_rounds  # noqa: E402


def text(seed, length=60):
    return [(seed * at * at + 7 * at + seed) % VOCABULARY for at in range(length)]


def rounds_of_turns(core, talks, turns):
    """Every rollout in turn says something, so that each has lost its blocks to the others when it goes on."""
    for turn in range(turns):
        for number, ids in enumerate(talks):
            ids.extend(text(number + 3, 9))
            sampling = Sampling(seed=turn) if number % 2 else GREEDY
            _, results = ask(core, list(ids), 6, sampling)
            run(core)
            check(results[0], ids, sampling, {0: plain()})
            ids.extend(results[0].completion_ids)


def test_rollouts_that_take_turns_in_little_room_read_only_what_is_new():
    read = {}
    for blocks in (0, 200):
        core = stepper(network(), tokens=144, offload_blocks=blocks)
        talks = [text(seed) for seed in range(1, 5)]
        rounds_of_turns(core, talks, 3)
        rounds_of_turns(core, [talks[0][:70], talks[1][:83]], 1)
        read[blocks] = core.stats.read_tokens
        assert bool(core.stats.fetched_blocks) == bool(blocks)
        assert core.pool.held_blocks == 0
    new = 4 * (60 + 3 * (9 + 6)) + 2 * (9 + 6)
    assert read[200] < new + 14 * 4, "but for the block at the end, which nobody keeps"
    assert read[0] > 2 * read[200]


@pytest.mark.parametrize("made", [stepper, stepper_in_rounds])
def test_a_sequence_that_was_stopped_finds_its_blocks_again(made):
    core = made(network("llama-wide"), tokens=96, max_sequences=4, offload_blocks=50)
    asked = [(text(seed, 20), ask(core, text(seed, 20), 50, Sampling(seed=seed))[1]) for seed in range(1, 4)]
    run(core)
    assert core.stats.preempted
    assert core.stats.fetched_blocks
    for seed, (prompt, results) in enumerate(asked, 1):
        check(results[0], prompt, Sampling(seed=seed), {0: plain("llama-wide")})


def test_new_weights_drop_what_is_kept():
    core = stepper(network(), tokens=96, offload_blocks=50)
    for seed in (1, 2):
        ask(core, text(seed), 4)
        run(core)
    core.decoder.module.load_state_dict(plain(seed=1).state_dict())
    core.weights_changed(1)
    _, results = ask(core, text(1), 4)
    run(core)
    assert (core.stats.fetched_blocks, results[0].usage.cached_tokens) == (0, 0)
    check(results[0], text(1), GREEDY, {1: plain(seed=1)})


def test_the_longest_unused_goes_first_and_room_is_never_lost():
    spec = DecoderSpec(layers=2, heads=1, kv_heads=1, head_dim=2, hidden=1, vocabulary=1, eps=1, qk_norm=False)
    pool = BlockPool(spec, 8, 4, torch.device("cpu"), torch.float32)
    attic = KVOffload(pool, 2)
    entries = [PrefixEntry(entry_id=at + 1, parent=0, tokens=(at,) * 4, block=at, version=at) for at in range(4)]
    for at, entry in enumerate(entries[:3]):
        pool.keys_LBTGD[:, at], pool.values_LBTGD[:, at] = at, -at
        attic.store(entry)
        attic.find(0, (0,) * 4)
    assert [attic.find(0, entry.tokens) for entry in entries] == [entries[0], None, entries[2], None]
    assert not attic.fetch(entries[1], 7)
    assert attic.fetch(entries[2], 7)
    assert (pool.keys_LBTGD[:, 7] == 2).all()
    assert (pool.values_LBTGD[:, 7] == -2).all()
    attic.store(entries[1])
    attic.store(entries[1])
    attic.drop_older_than(1)
    assert [attic.find(0, entry.tokens) for entry in entries] == [None, entries[1], None, None]
    attic.store(entries[2])
    assert attic.find(0, entries[1].tokens)
    attic.store(PrefixEntry(9, 0, (1, 2), 3, 5))
    assert attic.find(0, (1, 2)) is None
