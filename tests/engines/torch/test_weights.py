"""Weights published beside a running engine: decoding goes on, and every token names what sampled it."""

import asyncio
import time
from copy import deepcopy

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from gametape.core.errors import BadInput  # noqa: E402
from gametape.core.messages import GenerateRequest  # noqa: E402
from gametape.engines.torch.build import build_engine  # noqa: E402
from gametape.engines.torch.stepper import EngineLimits  # noqa: E402
from gametape.engines.torch.weights import StandbyWeights  # noqa: E402
from tests.patience import HANG  # noqa: E402

from ..tiny import tiny_network  # noqa: E402
from .networks import GREEDY, ask, check, network, plain, plain_logits, run, stepper  # noqa: E402
from .recorded import stepper_in_rounds  # noqa: E402


def request(prompt, max_tokens, **more):
    return GenerateRequest(request_id="r", prompt_ids=prompt, max_tokens=max_tokens, sampling=GREEDY, **more)


def with_engine(use, trainer, **limits):
    async def run():
        engine = build_engine(trainer, EngineLimits(**limits), kv_tokens=2048, own_weights=True)
        try:
            return await use(engine)
        finally:
            await engine.close()

    return asyncio.run(asyncio.wait_for(run(), HANG))


async def sampled(engine, tokens):
    while (await engine.stats()).sampled_tokens < tokens:
        await asyncio.sleep(0.001)


def test_the_trainers_module_is_left_alone():
    trainer = network().requires_grad_(True)
    before = {name: (value.data_ptr(), value.clone()) for name, value in trainer.state_dict().items()}

    async def use(engine):
        first = await engine.generate(request([5, 6], 6))
        await engine.publish(1, plain(seed=1).state_dict())
        return first, await engine.generate(request([5, 6], 6, min_policy_version=1))

    first, second = with_engine(use, trainer)
    check(first, [5, 6], GREEDY, {0: plain()})
    check(second, [5, 6], GREEDY, {1: plain(seed=1)})
    for name, value in trainer.state_dict().items():
        assert value.data_ptr() == before[name][0]
        assert torch.equal(value, before[name][1])
    assert all(parameter.requires_grad for parameter in trainer.parameters())


def test_tokens_are_sampled_while_new_weights_are_written(monkeypatch):
    entered, written = [], StandbyWeights.write

    def slow(shadow, weights):
        entered.append(shadow)
        time.sleep(0.05)
        written(shadow, weights)

    monkeypatch.setattr(StandbyWeights, "write", slow)

    async def use(engine):
        running = asyncio.ensure_future(engine.generate(request([4, 5, 6], 1500)))
        await sampled(engine, 3)
        publishing = asyncio.ensure_future(engine.publish(1, plain(seed=1).state_dict()))
        while not entered:
            await asyncio.sleep(0)
        before = (await engine.stats()).sampled_tokens
        await publishing
        during = (await engine.stats()).sampled_tokens - before
        running.cancel()
        return during

    assert with_engine(use, network()) > 5


def test_a_publisher_that_gives_up_does_not_leave_half_of_it():
    async def use(engine):
        given_up = asyncio.ensure_future(engine.publish(1, plain(seed=1).state_dict()))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(BadInput):
            await engine.publish(2, plain("qwen2").state_dict())
        await engine.publish(2, plain(seed=2).state_dict())
        return await engine.generate(request([5, 6], 8))

    answer = with_engine(use, network())
    assert set(answer.policy_versions) == {2}
    check(answer, [5, 6], GREEDY, {2: plain(seed=2)})


def trained(module, versions):
    """Small steps, as a trainer takes them: keys and values of neighbouring versions are nearly the same."""
    steps = {0: deepcopy(module)}
    for version in range(1, versions + 1):
        steps[version] = deepcopy(steps[version - 1])
        generator = torch.Generator().manual_seed(version)
        for parameter in steps[version].parameters():
            parameter.mul_(1 + 1e-3 * torch.randn(parameter.shape, generator=generator))
    return steps


@pytest.mark.parametrize("staleness", [0, 2])
def test_three_updates_within_a_turn(staleness):
    """Each token names its weights. With staleness 0 it is exactly theirs; with 2, keys and values are at most two
    versions old, so the third update has the first ones read again, and what is left is the little that two steps do.
    """
    modules, prompt = trained(network(), 3), list(range(40))

    async def use(engine):
        running = asyncio.ensure_future(engine.generate(request(prompt, 160)))
        read = []
        for version in (1, 2, 3):
            await sampled(engine, 30 * version)
            before = await engine.stats()
            await engine.publish(version, modules[version].state_dict())
            await sampled(engine, before.sampled_tokens + 5)
            after = await engine.stats()
            read.append(after.read_tokens - before.read_tokens - (after.sampled_tokens - before.sampled_tokens))
        return await running, read

    answer, read = with_engine(use, network(), max_staleness=staleness)
    assert sorted(set(answer.policy_versions)) == [0, 1, 2, 3]
    assert answer.policy_versions == sorted(answer.policy_versions)
    assert [again > 0 for again in read] == ([True] * 3 if staleness == 0 else [False, False, True])
    ids = [*prompt, *answer.completion_ids]
    gaps = []
    for version, module in modules.items():
        logprobs = plain_logits(module, ids)[len(prompt) - 1 : -1].log_softmax(-1)
        for at, named in enumerate(answer.policy_versions):
            if named == version:
                gaps.append(abs(float(logprobs[at, answer.completion_ids[at]]) - answer.logprobs[at]))
    assert max(gaps) < (1e-4 if staleness == 0 else 0.2)
    if staleness:
        others = plain_logits(modules[0], ids)[len(prompt) - 1 : -1].log_softmax(-1)
        named_last = [at for at, named in enumerate(answer.policy_versions) if named == 3]
        wrong = [abs(float(others[at, answer.completion_ids[at]]) - answer.logprobs[at]) for at in named_last]
        assert sum(gaps) / len(gaps) < sum(wrong) / len(wrong) / 2


def test_recorded_steps_see_the_new_weights():
    core = stepper_in_rounds(network("llama-wide"))
    shadow = StandbyWeights(core)
    prompt = list(range(9))
    results = [ask(core, prompt, 12)[1]]
    run(core)
    shadow.write(plain("llama-wide", seed=1).state_dict())
    shadow.swap(1)
    results.append(ask(core, prompt, 12)[1])
    run(core)
    for version, (generation,) in enumerate(results):
        check(generation, prompt, GREEDY, {version: plain("llama-wide", seed=version)})


def test_the_swap_copies_nothing():
    """The two sets of weights change places, so it takes no time that depends on their size."""
    core = stepper(tiny_network(4000), max_sequences=8)
    shadow = StandbyWeights(core)

    def places(decoder):
        return [parameter.data_ptr() for parameter in decoder.module.parameters()]

    for version in range(1, 4):
        shadow.write(tiny_network(4000, seed=version).state_dict())
        live, spare = places(core.decoder), places(shadow._spare)
        shadow.swap(version)
        assert (places(core.decoder), places(shadow._spare)) == (spare, live)
