"""Networks that only transformers can run: equal to transformers' own generation, whatever was cached before."""

import asyncio

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from gametape.core.errors import BadInput  # noqa: E402
from gametape.core.messages import GenerateRequest, Sampling, WeightUpdate  # noqa: E402
from gametape.engines.chat_formats.byte_format import byte_chat_format  # noqa: E402
from gametape.engines.conversation import Call, ToolResponse  # noqa: E402
from gametape.engines.errors import EngineError  # noqa: E402
from gametape.engines.token_conversation import TokenModel  # noqa: E402
from gametape.engines.torch.build import build_engine  # noqa: E402
from gametape.engines.transformers_engine import TransformersEngine  # noqa: E402

from .tiny import TOOLS, texts, tiny_network  # noqa: E402

GREEDY = Sampling(temperature=0)
NETWORK = tiny_network(260)


def request(prompt, max_tokens=12, sampling=GREEDY, conversation="c", stops=(), **more):
    return GenerateRequest(
        request_id="r",
        prompt_ids=prompt,
        max_tokens=max_tokens,
        sampling=sampling,
        conversation_id=conversation,
        stop_ids=list(stops),
        **more,
    )


def generate(engine, *args, **kwargs):
    return asyncio.run(engine.generate(request(*args, **kwargs)))


def reference(network, prompt, max_tokens):
    """Greedy ids and log-probabilities by transformers' own loop."""
    with torch.no_grad():
        out = network.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=max_tokens,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
        )
    ids = out.sequences[0, len(prompt) :].tolist()
    return ids, [float(step[0].log_softmax(-1)[i]) for step, i in zip(out.logits, ids, strict=True)]


def same(generation, expected, tolerance=1e-4):
    ids, logprobs = expected
    assert generation.completion_ids == ids
    assert all(abs(a - b) < tolerance for a, b in zip(generation.logprobs, logprobs, strict=True))


prompts = st.lists(st.integers(0, 259), min_size=1, max_size=12)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(prompts, st.integers(0, 40)), min_size=1, max_size=4))
def test_what_was_cached_changes_nothing(talk):
    """Each prompt keeps some part of what went before and goes on otherwise."""
    engine, ids = TransformersEngine(NETWORK), []
    for more, kept in talk:
        prompt = ids[:kept] + more
        generation = generate(engine, prompt, 5)
        same(generation, reference(NETWORK, prompt, 5))
        ids = prompt + generation.completion_ids


def test_only_what_is_new_is_read():
    engine = TransformersEngine(NETWORK, cached_tokens=100)
    first = generate(engine, [1, 2, 3], 4)
    assert first.usage.cached_tokens == 0
    grown = [1, 2, 3, *first.completion_ids]
    assert generate(engine, [*grown, 9], 4).usage.cached_tokens == len(grown) - 1
    assert generate(engine, [1, 2, 3], 4).usage.cached_tokens == 2
    assert generate(engine, [1, 2, 3, 4], 4, conversation="other").usage.cached_tokens == 0
    generate(engine, list(range(95)), 1, conversation="long")
    assert generate(engine, [1, 2, 3], 4).usage.cached_tokens == 0


def test_long_prompts_are_read_in_parts():
    prompt = [(7 * i) % 260 for i in range(2500)]
    same(generate(TransformersEngine(NETWORK), prompt, 4), reference(NETWORK, prompt, 4))


def test_a_stop_id_ends_the_turn_and_is_part_of_it():
    engine = TransformersEngine(NETWORK)
    free = generate(engine, [5, 6])
    stop = free.completion_ids[3]
    stopped = generate(engine, [5, 6], stops=[stop])
    assert stopped.completion_ids == free.completion_ids[: free.completion_ids.index(stop) + 1]
    assert (stopped.finish, free.finish, len(free.completion_ids)) == ("stop", "length", 12)


def test_seeds_decide():
    engine = TransformersEngine(NETWORK)
    drawn = [generate(engine, [5], sampling=Sampling(seed=seed)).completion_ids for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    unseeded = [generate(engine, [5], sampling=Sampling()).completion_ids for _ in range(2)]
    assert unseeded[0] != unseeded[1]


def test_it_draws_what_the_embedded_engine_draws():
    async def run():
        fast = build_engine(tiny_network(260), kv_tokens=256)
        drawn = await fast.generate(request([5, 6], 30, Sampling(seed=3, top_p=0.9)))
        await fast.close()
        return drawn

    drawn = asyncio.run(run())
    same(
        generate(TransformersEngine(NETWORK), [5, 6], 30, Sampling(seed=3, top_p=0.9)),
        (drawn.completion_ids, drawn.logprobs),
    )


def test_the_event_loop_stays_free_and_requests_do_not_mix():
    engine = TransformersEngine(NETWORK)

    async def run():
        ticks = 0
        jobs = [asyncio.ensure_future(engine.generate(request([n, n + 1], 60, conversation=f"c{n}"))) for n in range(4)]
        while not all(job.done() for job in jobs):
            await asyncio.sleep(0)
            ticks += 1
        return ticks, [job.result() for job in jobs]

    ticks, generations = asyncio.run(run())
    assert ticks > 10
    for n, generation in enumerate(generations):
        same(generation, reference(NETWORK, [n, n + 1], 60))


def test_a_request_that_is_given_up_frees_the_engine():
    engine = TransformersEngine(NETWORK)

    async def run():
        endless = asyncio.ensure_future(engine.generate(request([1], 10**6, conversation="endless")))
        while not engine._worker._work_queue.empty():
            await asyncio.sleep(0)
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        return await engine.generate(request([5, 6]))

    same(asyncio.run(run()), reference(NETWORK, [5, 6], 12))


def test_new_weights_are_used_from_then_on(tmp_path):
    engine, other = TransformersEngine(tiny_network(260)), tiny_network(260, seed=1)
    other.save_pretrained(tmp_path)
    before = generate(engine, [5, 6])
    asyncio.run(engine.update_weights(WeightUpdate(policy_version=3, location=str(tmp_path))))
    after = generate(engine, [5, 6], min_policy_version=3)
    assert asyncio.run(engine.policy_version()) == 3
    assert (set(before.policy_versions), set(after.policy_versions)) == ({0}, {3})
    assert before.completion_ids != after.completion_ids
    same(after, reference(other, [5, 6], 12))


def test_weights_of_another_model_are_refused_whole(tmp_path):
    engine = TransformersEngine(tiny_network(260))
    before = generate(engine, [5, 6])
    tiny_network(261, seed=1).save_pretrained(tmp_path)
    for place in (tmp_path, tmp_path / "absent"):
        with pytest.raises(BadInput):
            asyncio.run(engine.update_weights(WeightUpdate(policy_version=1, location=str(place))))
    assert generate(engine, [5, 6]).completion_ids == before.completion_ids


def test_older_weights_do_not_answer():
    with pytest.raises(EngineError) as trouble:
        generate(TransformersEngine(NETWORK), [1], min_policy_version=1)
    assert trouble.value.kind == "refused"


@pytest.mark.parametrize("prompt", [[], [260]])
def test_prompts_that_cannot_be_read_are_refused(prompt):
    with pytest.raises(BadInput, match="below 260"):
        generate(TransformersEngine(NETWORK), prompt)


@settings(deadline=None, max_examples=8)
@given(st.lists(texts, min_size=1, max_size=3), texts, st.sampled_from([GREEDY, Sampling(seed=4)]))
def test_forks_and_recalled_conversations_continue_alike(said, last, sampling):
    async def run():
        model = TokenModel("tiny", TransformersEngine(NETWORK), byte_chat_format(), 4096)
        talk = model.start_conversation(sampling)
        talk.begin("s", TOOLS[1:], "u")
        replies = [await talk.ask(6)]
        for text in said:
            talk.add_tool_responses([ToolResponse(Call("read", {}), text)])
            replies.append(await talk.ask(6))
        forked = talk.fork()
        recalled = TokenModel("tiny", TransformersEngine(NETWORK), byte_chat_format(), 4096).start_conversation(
            sampling
        )
        for reply in replies:
            recalled.replay(reply)
        tokens = []
        for each in (forked, talk, recalled):
            each.add_user_message(last)
            tokens.append((await each.ask(10)).tokens)
        assert [(t.prompt_ids, t.completion_ids) for t in tokens[1:]] == [
            (tokens[0].prompt_ids, tokens[0].completion_ids)
        ] * 2

    asyncio.run(run())
