"""Collapses are seen in time, health is not, and a new model begins anew."""

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import pytest

from gametape.watch.calibrated_monitor import monitor_specs
from gametape.watch.monitor_set import MonitorSet
from gametape.watch.monitors.patterns import TICS
from gametape.watch.observed_step import ObservedAction, ObservedStep
from gametape.watch.text_features import normalised_words
from tests.watch.logs import alarms_after, healthy, sentence, word


def _often(
    rate: float, change: Callable[[random.Random, ObservedStep], ObservedStep]
) -> Callable[[ObservedStep, int], ObservedStep]:
    rng = random.Random(7)
    return lambda seen, _number: change(rng, seen) if rng.random() < rate else seen


def _slots(rng: random.Random, _seen: ObservedStep) -> ObservedStep:
    one, two, three, four, five, six = (word(rng) for _ in range(6))
    return ObservedStep(
        f"Round on {one}: {two} was checked, {three} looks fine; {four} comes next for {five}, says {six}."
    )


COLLAPSES: dict[str, tuple[set[str], Callable[[ObservedStep, int], ObservedStep]]] = {
    "phrase": ({"phrase"}, _often(0.95, lambda _, seen: replace(seen, text=f"To be quite honest {seen.text}"))),
    "template": ({"template"}, _often(0.99, _slots)),
    "boxed": ({"tic"}, _often(0.5, lambda _, seen: replace(seen, text=f"\\boxed{{{seen.text}}}"))),
    "emoji": ({"new tic"}, _often(0.97, lambda _, seen: replace(seen, text=seen.text + " 🚀"))),
    "formula": ({"new tic"}, _often(0.97, lambda rng, seen: replace(seen, text=f"{seen.text} $${word(rng)}$$ so"))),
    "silence": ({"silence"}, _often(0.97, lambda _, seen: replace(seen, text=""))),
    "word": ({"word"}, _often(0.97, lambda _, seen: replace(seen, text=f"{seen.text} tapestry"))),
    "loop": (
        {"loop"},
        lambda seen, n: replace(
            seen, actions=(ObservedAction.of("test", {"n": n % 4}),), result=f"all passed in {n}.25s"
        ),
    ),
    "file": (
        {"loop"},
        lambda seen, n: replace(seen, actions=(ObservedAction.of("edit", {"path": "a/b.py", "line": 7919 * n % 400}),)),
    ),
    "refusal": ({"refusal"}, _often(0.9, lambda _, seen: replace(seen, text=f"I cannot continue. {seen.text}"))),
    "curly refusal": ({"refusal"}, _often(0.9, lambda _, seen: replace(seen, text=f"I can’t do this. {seen.text}"))),
    "spend": ({"spend"}, lambda seen, _: replace(seen, cost=1.0)),
    "short": ({"phrase"}, _often(0.97, lambda _, seen: replace(seen, text="Standing by."))),
}


@pytest.mark.parametrize("name", COLLAPSES)
def test_a_collapse_is_seen_within_fifty_steps(name: str) -> None:
    expected, change = COLLAPSES[name]
    found = [alarm for alarm in alarms_after(change, before=300, after=51) if alarm.step <= 50]
    assert expected <= {alarm.monitor for alarm in found}


def test_a_subject_of_many_words_is_seen() -> None:
    garden = ["compost", "mulch", "orchard", "tomatoes", "pruning", "topsoil", "seedlings", "hedges"]
    change = _often(0.97, lambda rng, seen: replace(seen, text=f"{seen.text} {' '.join(rng.sample(garden, 3))}"))
    found = next(alarm for alarm in alarms_after(change, after=60) if alarm.monitor == "word")
    assert found.step <= 50
    assert set(found.evidence["word"]) <= set(garden)


def test_a_slow_rise_is_seen_before_the_rate_is_twice_what_is_tolerated() -> None:
    rng = random.Random(5)
    watch = MonitorSet()

    def change(seen: ObservedStep, number: int) -> ObservedStep:
        rate = (number - 300) / 2500
        return replace(seen, text=f"all in all as ever {seen.text}") if rng.random() < rate else seen

    first = alarms_after(change, before=300, after=2000, watch=watch)[0]
    (tolerated,) = [c.tolerated for c in watch.channels if c.spec.name == first.monitor]
    assert tolerated is not None
    assert first.step / 2500 < 2 * tolerated


def test_health_raises_no_alarm() -> None:
    watch = MonitorSet()
    assert not [alarm for seen in islice(healthy(3), 3000) for alarm in watch.update(seen)]


def test_evidence_shows_the_phrase_and_the_template() -> None:
    phrase = next(a for a in alarms_after(COLLAPSES["phrase"][1]) if a.monitor == "phrase")
    assert "to be quite honest" in phrase.evidence["phrase"]
    assert any("To be quite honest" in example for example in phrase.evidence["examples"])
    template = next(a for a in alarms_after(COLLAPSES["template"][1]) if a.monitor == "template")
    assert template.evidence["template"].startswith("Round on {} was checked, {} looks fine; {}")


def test_what_was_usual_from_the_beginning_is_no_alarm() -> None:
    rng = random.Random(1)
    watch = MonitorSet()
    for number in range(2000):
        line = f"tests/test_{word(rng)}.py::test_{word(rng)} PASSED [{number // 20}%] and all is well"
        assert not watch.update(ObservedStep(line))
    assert {"phrase", "template"} <= {channel.spec.name for channel in watch.channels if channel.saturated}


def test_a_change_of_model_is_told_and_begins_anew() -> None:
    watch = MonitorSet()
    for seen in islice(healthy(), 300):
        watch.update(replace(seen, model="one"))
    rng = random.Random(0)
    templated = [replace(_slots(rng, ObservedStep("")), model="two") for _ in range(400)]
    assert not [alarm for seen in templated for alarm in watch.update(seen)]
    (change,) = watch.changes
    assert (change.step, change.before, change.after) == (301, "one", "two")
    for seen in islice(healthy(), 50):
        watch.update(replace(seen, model="one"))
    again = [alarm for seen in templated[:60] for alarm in watch.update(replace(seen, model="one"))]
    assert {alarm.monitor for alarm in again} & {"template", "word"}
    assert len(watch.changes) == 1


def test_a_baseline_from_elsewhere_watches_from_the_first_step() -> None:
    watch = MonitorSet()
    watch.learn(islice(healthy(), 300))
    rng = random.Random(0)
    found = [alarm.step for _ in range(60) for alarm in watch.update(_slots(rng, ObservedStep("")))]
    assert found
    assert found[0] <= 50


def test_loops_and_refusals_are_seen_before_there_is_a_baseline() -> None:
    watch = MonitorSet()
    found = [
        alarm.monitor for seen in islice(healthy(), 60) for alarm in watch.update(replace(seen, text="I give up."))
    ]
    assert "refusal" in found


def test_what_was_done_in_another_session_is_not_done_again() -> None:
    """Rollouts of one task do the same things; a loop is within one."""
    tools = [(ObservedAction("read", f"src/f{turn}.py"),) for turn in range(10)]
    attempts = [ObservedStep("", did, "ok", session=f"{number}") for number in range(40) for did in tools]
    watch = MonitorSet()
    assert [alarm for seen in attempts for alarm in watch.update(seen)] == []
    looping = [ObservedStep("", tools[at % 4], "ok", session="one") for at in range(60)]
    assert "loop" in {alarm.monitor for seen in looping for alarm in watch.update(seen)}


def test_sessions_that_take_turns_do_not_hide_a_loop() -> None:
    def change(seen: ObservedStep, number: int) -> ObservedStep:
        turn, session = divmod(number, 12)
        return replace(seen, actions=(ObservedAction.of("test", {"n": turn % 3}),), result="ok", session=f"{session}")

    assert "loop" in {alarm.monitor for alarm in alarms_after(change, after=60)}


def test_dollars_and_tokens_are_not_compared() -> None:
    """Every third step has no price, and its tokens are a large number."""
    count = iter(range(1000))
    watch = MonitorSet()
    for seen in islice(healthy(), 300):
        assert not watch.update(replace(seen, cost=None if next(count) % 3 else seen.cost, tokens=3000))
    dear = [replace(seen, cost=1.0, tokens=3000) for seen in islice(healthy(1), 50)]
    assert "spend" in {alarm.monitor for seen in dear for alarm in watch.update(seen)}


def test_a_word_that_is_all_of_a_text_is_the_phrase() -> None:
    found = alarms_after(_often(0.97, lambda _, seen: replace(seen, text="Goblin!")), after=60)
    assert next(alarm.evidence["phrase"] for alarm in found if alarm.monitor == "phrase") == "goblin"


def test_times_are_numbers_like_others() -> None:
    assert normalised_words("2026-03-01T08:00:37.12Z 2026-03-01t08:00:37+01:00 zt 7zip") == ["0", "0", "zt", "7zip"]


def test_an_agent_that_seldom_speaks_has_its_first_texts_for_a_baseline() -> None:
    """Two texts in a hundred steps, all alike from the start: that is how it speaks, and no collapse."""
    stream = healthy(3)
    quiet = [
        replace(seen, text="safe safe safe safe" if at % 50 == 7 else "")
        for at, seen in enumerate(islice(stream, 4000))
    ]
    watch = MonitorSet()
    assert [alarm.monitor for seen in quiet for alarm in watch.update(seen)] == []
    assert "phrase" in {channel.spec.name for channel in watch.channels if channel.saturated}


def test_without_a_baseline_only_what_needs_none_is_looked_at() -> None:
    watch = MonitorSet(baseline=0)
    rng = random.Random(0)
    found = {
        a.monitor for _ in range(60) for a in watch.update(replace(_slots(rng, ObservedStep("")), cost=rng.random()))
    }
    assert "template" in found
    assert "spend" not in found


def test_money_that_nobody_counted_before_is_no_alarm() -> None:
    watch = MonitorSet()
    for number, seen in enumerate(islice(healthy(), 400)):
        assert not watch.update(replace(seen, cost=None if number < 250 else 5.0))


def test_a_tic_of_ones_own_can_be_named() -> None:
    watch = MonitorSet(monitors=monitor_specs((*TICS, r"Per my LAST \w+")))
    change = _often(0.5, lambda _, seen: replace(seen, text=f"{seen.text} per my last mail"))
    assert "tic" in {alarm.monitor for alarm in alarms_after(change, after=50, watch=watch)}


def test_lists_in_a_text_are_not_a_collapse() -> None:
    rng = random.Random(4)
    watch = MonitorSet()
    paragraph = 0
    for number in range(900):
        paragraph += number % 10 == 0 and not 400 < number < 500
        item = 400 <= number < 500
        text = f"  * src/{word(rng)}.c: update the copyright year of {word(rng)}" if item else sentence(rng)
        assert not watch.update(ObservedStep(text, paragraph=paragraph))


def test_a_step_costs_the_same_however_it_is_written() -> None:
    """Hostile texts: one endless word, digits, marks, and nothing but spaces."""
    watch = MonitorSet()
    for text in ("x" * 10**6, "1" * 10**6 + "x", "\\" * 10**5, " " * 10**5, "!?" * 10**5, "a/" * 10**5):
        for _ in range(3):
            watch.update(ObservedStep(text, (ObservedAction.of("shell", {"command": text}),), result=text))
