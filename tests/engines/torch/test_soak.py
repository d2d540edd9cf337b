"""Many rollouts at once, for long: no block is lost, nobody gets another's tokens, nobody waits for ever."""

import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from gametape.core.messages import Sampling  # noqa: E402

from .networks import GREEDY, VOCABULARY, ask, check, network, plain, stepper  # noqa: E402


def soak(rollouts, slots, tokens, seed, made=stepper, family="llama"):
    """Rollouts of a few turns: some are cancelled, some fork, and the weights change under them."""
    dice = random.Random(seed)
    core = made(network(family), tokens=tokens, block=8, max_sequences=slots, token_budget=64)
    system = [dice.randrange(VOCABULARY) for _ in range(30)]
    begun = finished = cancelled = forked = updates = longest_wait = step = 0
    running = []

    def begin(prompt, turns):
        sampling = GREEDY if dice.random() < 0.3 else Sampling(seed=dice.randrange(10**6), top_p=dice.choice([1, 0.9]))
        job, results = ask(core, prompt, dice.choice([1, 5, 20, 80]), sampling)
        running.append((job, results, prompt, sampling, turns, step))

    while running or begun < rollouts:
        while begun < rollouts and len(running) < slots + 8:
            begun += 1
            said = [dice.randrange(VOCABULARY) for _ in range(dice.randint(1, 40))]
            begin((system if dice.random() < 0.5 else []) + said, dice.randint(0, 2))
        core.step()
        step += 1
        if dice.random() < 0.02:
            updates += 1
            core.decoder.module.load_state_dict(plain(family, updates % 3).state_dict())
            core.weights_changed(updates)
        if running and dice.random() < 0.05:
            core.cancel(dice.choice(running)[0].arrival)
        for entry in [entry for entry in running if entry[1]]:
            running.remove(entry)
            _, results, prompt, sampling, turns, since = entry
            assert len(results) == 1
            modules = {version: plain(family, version % 3) for version in set(results[0].policy_versions)}
            check(results[0], prompt, sampling, modules)
            longest_wait = max(longest_wait, step - since)
            finished += 1
            if results[0].finish == "cancelled":
                cancelled += 1
            elif turns and len(prompt) < 150:
                grown = prompt + results[0].completion_ids
                for _ in range(1 + (dice.random() < 0.2)):
                    begin(grown + [dice.randrange(VOCABULARY) for _ in range(dice.randint(1, 20))], turns - 1)
                    forked += 1
    assert core.pool.held_blocks == 0
    assert not core.busy
    assert cancelled
    assert updates
    assert core.stats.preempted
    assert core.stats.cached_tokens
    return core, finished, longest_wait


def test_a_short_soak():
    _, finished, longest_wait = soak(rollouts=40, slots=8, tokens=256, seed=3)
    assert finished >= 40
    assert longest_wait < 400


@pytest.mark.slow
def test_a_long_soak():
    _, finished, longest_wait = soak(rollouts=2000, slots=64, tokens=1536, seed=2)
    assert finished >= 2000
    assert longest_wait < 1000
