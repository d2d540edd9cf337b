"""Whatever is shared, stopped, forked, returned to or updated: each token is what a plain forward would have given."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from gametape.core.messages import Sampling  # noqa: E402
from gametape.engines.torch.attention import cpu, reference  # noqa: E402
from gametape.engines.torch.jobs import ScoreJob  # noqa: E402

from .networks import (  # noqa: E402
    FAMILIES,
    GREEDY,
    VOCABULARY,
    ask,
    check,
    copy_of,
    network,
    plain,
    plain_logits,
    run,
    stepper,
)

tokens = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=14)
samplings = st.one_of(
    st.just(GREEDY),
    st.builds(
        Sampling,
        temperature=st.sampled_from([0.7, 1.0]),
        top_p=st.sampled_from([0.8, 1.0]),
        top_k=st.sampled_from([0, 5]),
        seed=st.integers(0, 10**6),
    ),
)
turns = st.tuples(st.integers(0, 5), st.integers(0, 60), tokens, st.integers(1, 9), samplings)
"""Which earlier text to go on from, how much of it to keep, what to add, how much to sample, and how."""


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from(["llama", "llama-tied", "qwen2", "qwen3"]),
    st.lists(st.lists(turns, min_size=1, max_size=5), min_size=1, max_size=4),
    st.sampled_from([96, 1024]),
    st.sampled_from([8, 64]),
    st.sampled_from([0, 3, 100]),
)
def test_conversations_that_fork_and_go_back(family, rounds, room, budget, offload):
    """A small pool has to stop sequences and to give kept blocks away; a small budget cuts prompts into chunks."""
    core = stepper(network(family), tokens=room, max_sequences=4, token_budget=budget, offload_blocks=offload)
    texts = [[1, 2, 3, 4, 5, 6, 7, 8, 9]]
    for together in rounds:
        asked = []
        for which, kept, more, length, sampling in together:
            prompt = (texts[which % len(texts)][:kept] + more)[-70:]
            asked.append((prompt, sampling, length, ask(core, prompt, length, sampling)[1]))
        run(core, 2000)
        for prompt, sampling, length, results in asked:
            assert len(results) == 1
            assert len(results[0].completion_ids) == length
            assert results[0].usage.cached_tokens < len(prompt)
            check(results[0], prompt, sampling, {0: plain(family)})
            texts.append(prompt + results[0].completion_ids)
        assert core.pool.held_blocks == 0


@pytest.mark.parametrize("planner", [cpu.plan, reference.plan])
@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_is_greedy(family, planner):
    core = stepper(network(family), planner=planner)
    prompts = [[3], [4, 5, 6], [(5 * at) % VOCABULARY for at in range(90)]]
    asked = [(prompt, ask(core, prompt, 12)[1]) for prompt in prompts]
    run(core)
    for prompt, results in asked:
        check(results[0], prompt, GREEDY, {0: plain(family)})


def test_a_group_reads_its_prompt_once():
    core = stepper(network(), block=4)
    prompt = [(3 * at) % VOCABULARY for at in range(51)]
    asked = [ask(core, prompt, 6, Sampling(seed=seed))[1] for seed in range(8)]
    run(core)
    assert core.stats.read_tokens == 51 + 7 * 1 + 8 * 5
    assert sorted(results[0].usage.cached_tokens for results in asked) == [0] + [50] * 7
    for seed, results in enumerate(asked):
        check(results[0], prompt, Sampling(seed=seed), {0: plain()})


def test_the_next_turn_a_fork_and_a_return_read_only_what_is_new():
    core = stepper(network(), block=4)
    prompt = list(range(30))
    _, results = ask(core, prompt, 7)
    run(core)
    grown = prompt + results[0].completion_ids
    for text, new in (([*grown, 1, 2, 3], 4), ([*grown, 9, 8], 2), ([*prompt, 5], 1)):
        _, results = ask(core, text, 1)
        run(core)
        assert results[0].usage.cached_tokens == len(text) - new
        check(results[0], text, GREEDY, {0: plain()})


def test_company_does_not_change_what_a_seed_draws():
    prompts = [[(seed * at + 3) % VOCABULARY for at in range(5 + 7 * seed)] for seed in range(1, 7)]
    alone, together = [], []
    for seed, prompt in enumerate(prompts):
        core = stepper(network())
        alone.append(ask(core, prompt, 20, Sampling(seed=seed))[1])
        run(core)
    core = stepper(network(), tokens=128, max_sequences=5, token_budget=16)
    for seed, prompt in enumerate(prompts):
        together.append(ask(core, prompt, 20, Sampling(seed=seed))[1])
    run(core)
    assert core.stats.preempted
    assert [results[0].completion_ids for results in together] == [results[0].completion_ids for results in alone]


def test_a_long_prompt_does_not_stall_the_others():
    core = stepper(network(), token_budget=16)
    job, _ = ask(core, [1, 2], 100)
    core.step()
    ask(core, [(5 * at) % VOCABULARY for at in range(300)], 1)
    before = len(job.logprobs)
    for _ in range(10):
        core.step()
    assert len(job.logprobs) == before + 10


@pytest.mark.parametrize("staleness", [0, 1])
def test_each_token_names_its_weights_and_old_keys_are_read_again(staleness):
    modules = {version: network(seed=version) for version in range(3)}
    core = stepper(network(seed=0), max_staleness=staleness)
    prompt = list(range(20))
    _, results = ask(core, prompt, 12)
    for version in (1, 2):
        for _ in range(4):
            core.step()
        read = core.stats.read_tokens
        core.decoder.module.load_state_dict(modules[version].state_dict())
        core.weights_changed(version)
        core.step()
        assert (core.stats.read_tokens - read > 1) == (version > staleness)
    run(core)
    assert results[0].policy_versions == [0] * 4 + [1] * 5 + [2] * 3
    if staleness == 0:
        check(results[0], prompt, GREEDY, modules)
    assert core.pool.held_blocks == 0


def test_cached_prompts_of_old_weights_are_not_used():
    core = stepper(network(seed=0))
    prompt = list(range(40))
    ask(core, prompt, 2)
    run(core)
    core.decoder.module.load_state_dict(plain(seed=1).state_dict())
    core.weights_changed(1)
    _, results = ask(core, prompt, 3)
    run(core)
    assert results[0].usage.cached_tokens == 0
    check(results[0], prompt, GREEDY, {1: plain(seed=1)})


@pytest.mark.parametrize("start", [1, 30, 59])
def test_scores_are_the_plain_forwards(start):
    core = stepper(network("qwen3"), tokens=256, token_budget=16)
    ids = [(5 * at * at) % VOCABULARY for at in range(60)]
    ask(core, ids[:25], 30)
    results = []
    core.add(ScoreJob(ids, start, Sampling(temperature=0.5, top_k=60), results.append, 10**9))
    run(core)
    logits = plain_logits(plain("qwen3"), ids)[start - 1 : -1] / 0.5
    least = logits.topk(60).values[:, -1:]
    logprobs = logits.masked_fill(logits < least, -torch.inf).log_softmax(-1)
    expected = logprobs.gather(1, torch.tensor(ids[start:])[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(results[0]), expected, atol=1e-4, rtol=0)
    assert core.pool.held_blocks == 0


def test_a_cancelled_rollout_gives_back_its_room():
    core = stepper(network())
    job, results = ask(core, list(range(30)), 100)
    _, told_waiting = ask(core, [5], 4)
    for _ in range(5):
        core.step()
    core.cancel(job.arrival)
    core.cancel(job.arrival)
    assert (results[0].finish, core.pool.held_blocks > 0) == ("cancelled", bool(core._running))
    run(core)
    assert told_waiting[0].finish == "length"
    assert core.pool.held_blocks == 0


def test_a_stop_id_ends_the_turn_and_is_part_of_it():
    core = stepper(network())
    _, free = ask(core, [5, 6], 12)
    run(core)
    stop = free[0].completion_ids[3]
    _, stopped = ask(core, [5, 6], 12, stops=[stop])
    run(core)
    assert stopped[0].completion_ids == free[0].completion_ids[: free[0].completion_ids.index(stop) + 1]
    assert (stopped[0].finish, free[0].finish) == ("stop", "length")


def test_a_second_engine_over_a_copy_is_independent():
    module = network()
    core, other = stepper(module), stepper(copy_of(module))
    other.decoder.module.load_state_dict(plain(seed=1).state_dict())
    _, results = ask(core, [1, 2, 3])
    run(core)
    check(results[0], [1, 2, 3], GREEDY, {0: plain()})
