"""Rounds give what steps give, whatever is shared, stopped, forked, cancelled or updated between them."""

import asyncio
import gc

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from gametape.core.messages import GenerateRequest, Sampling  # noqa: E402
from gametape.engines.torch.engine import TorchEngine  # noqa: E402
from gametape.engines.torch.jobs import ScoreJob  # noqa: E402
from tests.patience import HANG  # noqa: E402

from .networks import GREEDY, VOCABULARY, ask, check, network, plain, plain_logits, run  # noqa: E402
from .recorded import FAMILIES, ON_GPU, stepper_in_rounds  # noqa: E402
from .test_soak import soak  # noqa: E402


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_draws_what_a_plain_forward_would(family):
    core = stepper_in_rounds(network(family), max_sequences=8, token_budget=32)
    prompts = [[3], [4, 5, 6], [(5 * at) % VOCABULARY for at in range(90)], [(3 * at) % VOCABULARY for at in range(33)]]
    rules = [GREEDY, Sampling(seed=3), Sampling(seed=5, temperature=0.7, top_p=0.8), Sampling(seed=6, top_k=5)]
    asked = [
        (prompt, rule, ask(core, prompt, 37, rule)[1])
        for prompt in prompts
        for rule in (rules if family == "qwen3" else rules[:2])
    ]
    run(core)
    for prompt, rule, results in asked:
        assert len(results[0].completion_ids) == 37
        check(results[0], prompt, rule, {0: plain(family)})
    assert core.pool.held_blocks == 0


def test_a_short_soak_in_rounds():
    _, finished, longest_wait = soak(40, 8, 256, seed=3, made=stepper_in_rounds, family="qwen3")
    assert finished >= 40
    assert longest_wait < 400


@pytest.mark.slow
@pytest.mark.skipif(not ON_GPU, reason="long")
def test_a_long_soak_in_rounds():
    soak(500, 64, 1536, seed=2, made=stepper_in_rounds, family="llama-wide")


def test_stop_tokens_and_what_has_too_many_of_them_or_is_too_long():
    core = stepper_in_rounds(network("qwen3"), longest=60)
    _, free = ask(core, [5, 6], 40)
    run(core)
    ids = free[0].completion_ids
    stop = ids[20]
    first = ids.index(stop) + 1
    unused = [token for token in range(VOCABULARY) if token not in ids]
    asked = [ask(core, [5, 6], 40, stops=stops)[1] for stops in ([stop], [unused[0], stop], [*unused[:5], stop])]
    _, long = ask(core, [5, 6], 70)
    run(core)
    for results in asked:
        assert (results[0].completion_ids, results[0].finish) == (ids[:first], "stop")
    assert long[0].completion_ids[:40] == ids
    check(long[0], [5, 6], GREEDY, {0: plain("qwen3")})


def test_who_is_not_in_the_rounds_moves_on_beside_them():
    core = stepper_in_rounds(network("qwen3"), longest=60)
    stepwise, _ = ask(core, [5, 6], 70)
    in_rounds, _ = ask(core, [7, 8], 50)
    for _ in range(9):
        core.step()
    assert (len(stepwise.logprobs), len(in_rounds.logprobs)) == (9, 1 + 9 * 4)


def test_a_group_reads_its_prompt_once_and_a_turn_goes_on_from_what_was_drawn():
    core = stepper_in_rounds(network("qwen3"))
    prompt = [(3 * at) % VOCABULARY for at in range(51)]
    asked = [ask(core, prompt, 26, Sampling(seed=seed))[1] for seed in range(8)]
    run(core)
    assert core.stats.read_tokens == 51 + 7 * 1 + 8 * 25
    for seed, results in enumerate(asked):
        check(results[0], prompt, Sampling(seed=seed), {0: plain("qwen3")})
    grown = prompt + asked[3][0].completion_ids
    _, results = ask(core, [*grown, 7, 7], 3)
    run(core)
    assert results[0].usage.cached_tokens == len(grown) - 1
    check(results[0], [*grown, 7, 7], GREEDY, {0: plain("qwen3")})


def test_scores_beside_rounds():
    core = stepper_in_rounds(network("qwen3"), tokens=256, token_budget=16)
    ids = [(5 * at * at) % VOCABULARY for at in range(60)]
    _, results = ask(core, ids[:25], 30)
    scored = []
    core.add(ScoreJob(ids, 30, Sampling(temperature=0.5), scored.append, 10**9))
    run(core)
    expected = (plain_logits(plain("qwen3"), ids)[29:-1] / 0.5).log_softmax(-1)
    expected = expected.gather(1, torch.tensor(ids[30:])[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(scored[0]), expected, atol=1e-4, rtol=0)
    check(results[0], ids[:25], GREEDY, {0: plain("qwen3")})


def test_a_step_goes_on_round_after_round_until_it_is_pressed():
    core = stepper_in_rounds(network("qwen3"))
    job, results = ask(core, [1, 2, 3], 300)
    core.step(lambda: True)
    assert len(job.logprobs) == 1 + 16
    looks = iter([False, False, True])
    core.step(lambda: next(looks))
    assert len(job.logprobs) == 1 + 4 * 16
    core.step()
    assert len(results[0].completion_ids) == 300


def test_prompts_are_read_in_a_row_until_those_that_decode_get_a_round():
    core = stepper_in_rounds(network("qwen3"), token_budget=8)
    decoding, _ = ask(core, [1, 2, 3], 300)
    core.step(lambda: True)
    prompt = [(3 * at) % VOCABULARY for at in range(90)]
    long, results = ask(core, prompt, 5)
    drawn = []
    while not long.logprobs:
        core.step()
        drawn.append(len(decoding.logprobs))
    # Seven or eight tokens a step: twelve steps and a bit, with one short round among them.
    assert drawn[6] == 1 + 16
    assert drawn[7] == 1 + 16 + 4
    run(core)
    check(results[0], prompt, GREEDY, {0: plain("qwen3")})


def test_newcomers_are_read_behind_the_last_round_and_join_the_next():
    core = stepper_in_rounds(network("qwen3"), max_sequences=2)
    short, _ = ask(core, [1, 2, 3], 10)
    long, results = ask(core, [4, 5], 70)
    waiting, others = ask(core, [6, 7, 8], 20, Sampling(seed=4))
    core.step()
    assert (short.tokens_left, len(long.logprobs), waiting.sequence.computed) == (0, 1 + 2 * 16, 3)
    assert waiting.logprobs == []
    run(core)
    check(results[0], [4, 5], GREEDY, {0: plain("qwen3")})
    check(others[0], [6, 7, 8], Sampling(seed=4), {0: plain("qwen3")})


def test_weights_change_under_a_request_and_another_is_given_up():
    """Through the engine's thread: what an event loop asks for presses, so rounds make way for it."""
    module = network("qwen3")

    async def use():
        engine = TorchEngine(stepper_in_rounds(module))
        running = asyncio.ensure_future(engine.generate(_request([4, 5, 6], 300)))
        given_up = asyncio.ensure_future(engine.generate(_request([4, 5, 7], 600)))
        while (await engine.stats()).sampled_tokens < 3:
            await asyncio.sleep(0)
        given_up.cancel()
        async with engine.pause_for_update(1):
            module.load_state_dict(plain("qwen3", 1).state_dict())
        generation = await running
        await engine.stats()
        held = engine._stepper.pool.held_blocks
        await engine.close()
        return generation, held

    generation, held = asyncio.run(asyncio.wait_for(use(), HANG))
    assert set(generation.policy_versions) == {0, 1}
    assert held == 0
    check(generation, [4, 5, 6], GREEDY, {0: plain("qwen3"), 1: plain("qwen3", 1)})


def _request(prompt, max_tokens):
    return GenerateRequest(request_id="r", prompt_ids=prompt, max_tokens=max_tokens, sampling=GREEDY)


def test_collections_look_at_everything_again_when_the_engine_is_closed():
    async def use():
        engine = TorchEngine(stepper_in_rounds(network("qwen3")))
        left_out = gc.get_freeze_count()
        await engine.close()
        return left_out

    assert asyncio.run(asyncio.wait_for(use(), HANG)) > 0
    assert gc.get_freeze_count() == 0
