"""The engine from an event loop: requests come and go, weights change, the thread is ended."""

import asyncio

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from gametape.core.errors import BadInput  # noqa: E402
from gametape.core.messages import GenerateRequest, Sampling, WeightUpdate  # noqa: E402
from gametape.engines.errors import EngineError  # noqa: E402
from gametape.engines.torch.build import build_engine, open_torch_model  # noqa: E402
from gametape.engines.torch.engine import TorchEngine  # noqa: E402
from tests.patience import HANG  # noqa: E402

from ..tiny import CHATML, TOOLS, fetched_smollm2, tiny_network, write_directory  # noqa: E402
from .networks import GREEDY, check, network, plain, plain_logits, stepper  # noqa: E402


def request(prompt, max_tokens=8, sampling=GREEDY, **more):
    return GenerateRequest(request_id="r", prompt_ids=prompt, max_tokens=max_tokens, sampling=sampling, **more)


def with_engine(use, module=None, **limits):
    async def run():
        engine = TorchEngine(stepper(module or network(), **limits))
        try:
            return await use(engine)
        finally:
            await engine.close()

    return asyncio.run(asyncio.wait_for(run(), HANG))


def test_requests_run_together_and_the_event_loop_stays_free():
    async def use(engine):
        ticks = 0
        jobs = [asyncio.ensure_future(engine.generate(request([n, n + 1], 60))) for n in range(6)]
        while not all(job.done() for job in jobs):
            await asyncio.sleep(0)
            ticks += 1
        stats = await engine.stats()
        assert ticks > 10
        assert stats.steps < 6 * 60 / 2
        assert (stats.sampled_tokens, stats.read_tokens) == (360, 6 * (2 + 59))
        return [job.result() for job in jobs]

    for n, generation in enumerate(with_engine(use)):
        check(generation, [n, n + 1], GREEDY, {0: plain()})


def test_a_request_that_is_given_up_frees_its_room():
    async def use(engine):
        endless = asyncio.ensure_future(engine.generate(request([1], 1000)))
        while (await engine.stats()).sampled_tokens < 3:
            await asyncio.sleep(0)
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        after = await engine.generate(request([5, 6]))
        assert engine._stepper.pool.held_blocks == 0
        return after

    check(with_engine(use), [5, 6], GREEDY, {0: plain()})


def test_scores():
    ids = list(range(3, 40))

    async def use(engine):
        with pytest.raises(BadInput):
            await engine.score(ids, start=0)
        return await engine.score(ids)

    expected = plain_logits(plain(), ids).log_softmax(-1)[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(with_engine(use)), expected, atol=1e-4, rtol=0)


def test_a_trainer_changes_the_weights_in_place_under_a_running_request():
    module = network()

    async def use(engine):
        running = asyncio.ensure_future(engine.generate(request([4, 5, 6], 200)))
        while (await engine.stats()).sampled_tokens < 3:
            await asyncio.sleep(0)
        async with engine.pause_for_update(1):
            steps = engine._stepper.stats.steps
            await asyncio.sleep(0.01)
            module.load_state_dict(plain(seed=1).state_dict())
            assert engine._stepper.stats.steps == steps
        return await running

    generation = with_engine(use, module)
    assert set(generation.policy_versions) == {0, 1}
    check(generation, [4, 5, 6], GREEDY, {0: plain(), 1: plain(seed=1)})


def test_published_weights_are_used_from_then_on(tmp_path):
    plain(seed=1).save_pretrained(tmp_path)

    async def use(engine):
        await engine.generate(request([5, 6]))
        await engine.update_weights(WeightUpdate(policy_version=3, location=str(tmp_path)))
        assert await engine.policy_version() == 3
        return await engine.generate(request([5, 6], min_policy_version=3))

    generation = with_engine(use)
    assert set(generation.policy_versions) == {3}
    check(generation, [5, 6], GREEDY, {3: plain(seed=1)})


def test_weights_of_another_model_are_refused_whole(tmp_path):
    network("qwen2", seed=1).save_pretrained(tmp_path)

    async def use(engine):
        for place in (tmp_path, tmp_path / "absent"):
            with pytest.raises(BadInput):
                await engine.update_weights(WeightUpdate(policy_version=1, location=str(place)))
        return await engine.generate(request([5, 6]))

    check(with_engine(use), [5, 6], GREEDY, {0: plain()})


def test_what_cannot_be_answered_is_refused():
    async def use(engine):
        for prompt in ([], [97], [-1]):
            with pytest.raises(BadInput, match="below 97"):
                await engine.generate(GenerateRequest.model_construct(request_id="r", prompt_ids=prompt, max_tokens=1))
        for asked in (request([1], min_policy_version=1), request([1] * 100, 2000)):
            with pytest.raises(EngineError) as trouble:
                await engine.generate(asked)
            assert trouble.value.kind == "refused"

    with_engine(use)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_breakdown_reaches_whoever_waits():
    def broken(pool, spans):
        raise RuntimeError("no memory")

    async def run():
        engine = TorchEngine(stepper(network(), planner=broken))
        with pytest.raises(EngineError, match="no memory") as trouble:
            await engine.generate(request([1, 2]))
        assert trouble.value.kind == "server_error"
        with pytest.raises(EngineError, match="closed"):
            await engine.generate(request([1, 2]))
        await engine.close()

    asyncio.run(asyncio.wait_for(run(), HANG))


def test_closing_ends_what_runs():
    async def use(engine):
        running = asyncio.ensure_future(engine.generate(request([1], 1000)))
        while (await engine.stats()).sampled_tokens < 3:
            await asyncio.sleep(0)
        await engine.close()
        return await running

    assert with_engine(use).finish == "cancelled"


def test_closing_answers_those_that_were_not_begun():
    async def use(engine):
        async with engine.pause_for_update(1):
            late = [asyncio.ensure_future(engine.generate(request([1], 5))), asyncio.ensure_future(held(engine))]
            await asyncio.sleep(0)
            closing = asyncio.ensure_future(engine.close())
            await asyncio.sleep(0.01)
        await closing
        return await asyncio.gather(*late, return_exceptions=True)

    async def held(engine):
        async with engine.pause_for_update(2):
            pass

    assert [error.kind for error in with_engine(use)] == ["refused"] * 2


def test_a_directory_is_opened_with_its_own_dialect(tmp_path):
    tiny_network(402).save_pretrained(tmp_path)
    model = open_torch_model(write_directory(tmp_path, CHATML), "tiny")
    talk = model.start_conversation(GREEDY)
    talk.begin("s", TOOLS, "u")

    async def run():
        replies = [await talk.ask(8)]
        talk.add_user_message("more")
        replies.append(await talk.ask(8))
        await model.close()
        return replies

    first, second = asyncio.run(run())
    assert second.usage.cached_tokens >= len(first.tokens.prompt_ids) + len(first.tokens.completion_ids) - 1
    assert (model.name, model.trainable, model.window) == ("tiny", True, 4096)


def test_a_directory_without_weights_is_refused_in_one_line(tmp_path):
    with pytest.raises(BadInput) as refused:
        open_torch_model(write_directory(tmp_path, CHATML), "tiny")
    assert "\n" not in str(refused.value)


def test_seeds_decide():
    async def use(engine):
        return [
            (await engine.generate(request([5], 12, Sampling(seed=seed)))).completion_ids
            for seed in (1, 1, 2, None, None)
        ]

    drawn = with_engine(use)
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[3] != drawn[4]


def test_another_family_is_run_the_slow_way_and_that_is_said(tmp_path, caplog):
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    other = GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=1, n_head=2, vocab_size=402, bos_token_id=0, eos_token_id=0))
    other.save_pretrained(tmp_path)
    assert build_engine(other) is None
    model = open_torch_model(write_directory(tmp_path, CHATML), "other")
    assert "gpt2 run one request at a time" in caplog.text

    async def run():
        talk = model.start_conversation(GREEDY)
        talk.begin("s", TOOLS, "u")
        reply = await talk.ask(4)
        await model.close()
        return reply

    assert asyncio.run(run()).tokens is not None


@pytest.mark.slow
def test_smollm2_says_what_transformers_makes_it_say():
    """With a fork, and in company."""
    model = open_torch_model(fetched_smollm2(), "smollm2")
    asked = ["Write a Python function that adds two numbers.", "What is the capital of France?", "Count to five."]

    async def run():
        talk = model.start_conversation(GREEDY)
        talk.begin("You are a helpful assistant.", TOOLS, asked[0])
        replies = [await talk.ask(24)]
        forks = [talk.fork() for _ in asked]
        for fork, text in zip(forks, asked, strict=True):
            fork.add_user_message(text)
        replies += await asyncio.gather(*(fork.ask(24) for fork in forks))
        await model.close()
        return replies

    module = model.engine._stepper.decoder.module
    for reply in asyncio.run(run()):
        turn = reply.tokens
        logits = plain_logits(module, [*turn.prompt_ids, *turn.completion_ids])[len(turn.prompt_ids) - 1 : -1]
        logprobs = logits.log_softmax(-1)
        assert logits.argmax(-1).tolist() == turn.completion_ids
        expected = logprobs.gather(1, torch.tensor(turn.completion_ids)[:, None])[:, 0]
        torch.testing.assert_close(torch.tensor(turn.logprobs), expected, atol=1e-4, rtol=0)
