"""Steps to watch: healthy ones of many words in random order, and what becomes of them."""

import random
from collections.abc import Callable, Iterator

from gametape.watch.monitor_set import BehaviourAlarm, MonitorSet
from gametape.watch.observed_step import ObservedAction, ObservedStep

_SYLLABLES = [first + second for first in "bdfgklmnprst" for second in ("a", "e", "i", "o", "u", "an", "er", "il")]


def word(rng: random.Random) -> str:
    """One of some two thousand, a few of them common."""
    number = int(2000 * rng.random() ** 2)
    return _SYLLABLES[number % 96] + _SYLLABLES[number // 96] + "t"


def sentence(rng: random.Random) -> str:
    return " ".join(word(rng) for _ in range(rng.randint(8, 20)))


def healthy(seed: int = 0) -> Iterator[ObservedStep]:
    rng = random.Random(seed)
    while True:
        call = ObservedAction.of(word(rng), {"path": f"src/{word(rng)}.py"})
        yield ObservedStep(sentence(rng), (call,), result=sentence(rng), cost=rng.uniform(0.01, 0.02))


def alarms_after(
    change: Callable[[ObservedStep, int], ObservedStep],
    before: int = 400,
    after: int = 200,
    watch: MonitorSet | None = None,
) -> list[BehaviourAlarm]:
    """Healthy steps, then changed ones: what the watch says, steps counted from the change."""
    watch = watch or MonitorSet()
    found = []
    for number, seen in enumerate(healthy()):
        if number == before + after:
            return found
        alarms = watch.update(change(seen, number) if number >= before else seen)
        assert not alarms or number >= before, alarms
        found += [BehaviourAlarm(a.monitor, a.step - before, a.statistic, a.threshold, a.evidence) for a in alarms]
    raise AssertionError("healthy steps never end")
