"""Whatever can be counted in a step is a habit: new ones and lost ones are seen, and how an agent always was is not."""

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import pytest

from gametape.watch.detector import EDetector
from gametape.watch.habit_channel import HabitChannel, HabitSpec, RareDetector
from gametape.watch.observed_step import ObservedStep
from tests.watch.logs import healthy, word

_LINES = (
    "We open {} and read what it does with {} before anything else.",
    "The {} was set too late, so the {} could not be found by the caller.",
    "Now there is a test for {} and it fails, as it should, because of {}.",
    "I moved {} out of the way and put {} in its place for the time being.",
)


def spoken(rng: random.Random) -> str:
    return " ".join(line.format(word(rng), word(rng)) for line in rng.sample(_LINES, 2))


def first_alarm(change: Callable[[random.Random, ObservedStep], ObservedStep], after: int = 60) -> tuple[int, str]:
    """When the habit is noticed, counted from where it begins, and which it is."""
    rng = random.Random(11)
    channel = HabitChannel(HabitSpec())
    for number, step in enumerate(islice(healthy(5), 300 + after)):
        said = replace(step, text=spoken(rng))
        if number < 200:
            channel.learn(said)
            continue
        if number == 200:
            channel.end_baseline(200)
        channel.update(said if number < 300 else change(rng, said))
        if channel.value >= 130_000:
            return number - 300, channel.evidence()["habit"]
    return after, ""


def says(*lines: str) -> Callable[[random.Random, ObservedStep], ObservedStep]:
    return lambda rng, step: replace(step, text=f"{step.text} {rng.choice(lines)}")


HABITS: dict[str, Callable[[random.Random, ObservedStep], ObservedStep]] = {
    "emoji": says("\N{ROCKET}", "\N{SPARKLES}", "\N{BRAIN}", "\N{FIRE}"),
    "question": says("Is it right?", "What now?", "Which one?"),
    "thanks": says("Many thanks for it.", "I appreciate that.", "Merci beaucoup.", "With gratitude."),
    "refusal": says("Das kann ich leider nicht tun.", "I'm afraid I can't do it.", "No puedo seguir.", "我无法完成。"),
    "waiting": says("Let me know.", "Waiting for your input.", "I am ready when you are."),
    "capitals": lambda _, step: replace(step, text=step.text.upper()),
    "broken order": lambda rng, step: replace(step, text=" ".join(rng.sample(step.text.split(), 20))),
    "stuck": lambda rng, step: replace(step, text=f"{step.text} {' '.join([word(rng)] * 40)}"),
    "numbers": lambda rng, step: replace(step, text=" ".join(str(rng.randrange(900)) for _ in range(20))),
    "new language": lambda rng, step: replace(
        step, text=f"Ich sehe nach, ob {word(rng)} nicht auch in dem {word(rng)} ist."
    ),
    "same text": lambda rng, step: replace(step, text=_LINES[rng.randrange(4)].format("it", "that")),
    "no tool": lambda _, step: replace(step, actions=(), result=None),
    "known words": lambda rng, step: replace(
        step, text=" ".join("".join(rng.choices("abcdefghijklmnop", k=7)) for _ in range(15))
    ),
}


@pytest.mark.parametrize("name", HABITS)
def test_a_new_habit_is_seen_within_fifty_steps(name: str) -> None:
    delay, habit = first_alarm(HABITS[name])
    assert delay <= 50
    assert habit in {name, "function words", "length"}


def test_health_is_no_habit() -> None:
    assert first_alarm(lambda _, step: step, after=700) == (700, "")


def test_a_burst_is_no_habit() -> None:
    count = iter(range(1000))
    assert first_alarm(lambda _, step: replace(step, actions=()) if next(count) < 15 else step, after=100)[1] == ""


def test_noes_that_are_not_told_count_as_if_they_were() -> None:
    rng = random.Random(2)
    told, rare = EDetector(0.2), RareDetector(0.2, needed=3, at=0)
    for number in range(1, 400):
        yes = rng.random() < 0.3
        value = told.update(yes)
        if yes:
            rare.yes_at(number)
            assert rare.value == pytest.approx(value)


def test_the_mean_time_to_a_false_alarm_is_kept() -> None:
    """At exactly the tolerated rate, the worst that is promised for."""
    rng = random.Random(4)
    threshold, times = 300.0, []
    for _ in range(200):
        detector, number = RareDetector(0.2, needed=1, at=0), 0
        while detector.value < threshold:
            number += 1
            if rng.random() < 0.2:
                detector.yes_at(number)
        times.append(number)
    assert sum(times) / len(times) > threshold


def test_memory_is_bounded() -> None:
    rng = random.Random(3)
    channel = HabitChannel(HabitSpec())
    for number in range(6000):
        channel.update(
            ObservedStep(f"the {rng.random()} of word{number} and {word(rng)} is in x{number} as y{number} said")
        )
    measures = channel._measures
    assert max(len(measures._texts), len(measures._states)) <= 4000
    assert len(measures._known) <= 20_020
