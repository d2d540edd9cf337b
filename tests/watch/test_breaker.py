"""The ladder climbs while nothing helps, and the harness meets it half-way."""

from itertools import islice
from typing import Any

from gametape.core.step import Step
from gametape.watch.breaker import RUNGS, BehaviourBreaker, BreakerTrip, EscalationLadder, EscalationPatience
from gametape.watch.monitor_set import BehaviourAlarm, MonitorSet
from tests.watch.logs import healthy


def _alarm(step: int) -> BehaviourAlarm:
    return BehaviourAlarm(
        "phrase", step, 2e5, 1.4e5, {"phrase": "as ever\x1b[31m", "share": 0.9, "examples": ["As ever, x."]}
    )


def _rungs(steps: list[int], patience: EscalationPatience) -> list[str | None]:
    ladder, found = EscalationLadder(), []
    for step in steps:
        ladder, trip = ladder.escalate(_alarm(step), patience)
        found.append(trip and trip.rung)
    return found


def test_each_alarm_that_comes_back_is_a_rung_higher() -> None:
    patience = EscalationPatience(grace=10, forget=100)
    assert _rungs([5, 20, 40, 60, 80], patience) == [*RUNGS, "stop"]


def test_a_rung_is_given_time_to_help() -> None:
    assert _rungs([5, 8, 15, 16], EscalationPatience(grace=10, forget=100)) == ["nudge", None, None, "fresh_context"]


def test_all_is_forgotten_after_a_quiet_time() -> None:
    assert _rungs([5, 50, 300], EscalationPatience(grace=10, forget=100)) == ["nudge", "fresh_context", "nudge"]


def test_a_trip_says_why_in_plain_text() -> None:
    trip = BreakerTrip("nudge", 5, _alarm(5))
    assert "as ever" in trip.nudge
    assert "\x1b" not in trip.nudge
    assert trip.to_dict()["kind"] == "breaker"
    assert trip.to_dict()["evidence"]["examples"] == ["As ever, x."]


def _step(number: int, text: str, **more: Any) -> Step:
    return Step.model_validate({"step_id": number, "source": "agent", "message": text, "model_name": "m", **more})


def test_the_harness_hands_over_steps_and_takes_trips() -> None:
    told: list[BreakerTrip] = []
    watch = MonitorSet()
    watch.learn(islice(healthy(), 300))
    breaker = BehaviourBreaker(watch, EscalationPatience(grace=5), told.append)
    taken = []
    for number in range(1, 150):
        breaker(_step(number, "Standing by."))
        breaker(
            Step.model_validate({"step_id": number, "source": "user", "message": "What others say does not count."})
        )
        trip = breaker.take_trip()
        assert breaker.take_trip() is None
        if trip:
            taken.append(trip.rung)
    assert taken[:4] == list(RUNGS)
    assert {trip.rung for trip in told} == {"pause", "stop"}


def test_a_copied_turn_is_not_seen_twice() -> None:
    watch = MonitorSet()
    breaker = BehaviourBreaker(watch)
    breaker(_step(1, "Seen elsewhere.", is_copied_context=True))
    assert watch.steps == 0
