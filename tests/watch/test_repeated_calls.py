"""A call that is repeated with the same result: told at the third time, and not where something happens."""

from collections.abc import Sequence
from typing import Any

from gametape.core.step import Step
from gametape.watch.breaker import BehaviourBreaker
from gametape.watch.monitor_set import MonitorSet
from gametape.watch.observed_step import ObservedAction, ObservedStep
from gametape.watch.repeated_calls import RepeatedCalls, RepeatedSteps

Call = tuple[str, dict[str, Any], str]


def step(number: int, *calls: Call, notice: str = "") -> Step:
    made = [
        {"tool_call_id": f"call_{number}_{at}", "function_name": name, "arguments": given}
        for at, (name, given, _) in enumerate(calls)
    ]
    results: list[dict[str, Any]] = [
        {"source_call_id": f"call_{number}_{at}", "content": result} for at, (_, _, result) in enumerate(calls)
    ]
    results += [{"content": notice}] if notice else []
    document = {"step_id": number, "source": "agent", "message": f"Step {number}.", "tool_calls": made}
    return Step.model_validate(document | {"observation": {"results": results}})


def shell(command: str, result: str = "same") -> Call:
    return "shell", {"command": command}, result


def told_at(calls: Sequence[Call]) -> list[int]:
    watched = RepeatedCalls()
    return [number for number, call in enumerate(calls, start=1) if watched.update(step(number, call))]


def test_the_third_identical_call_is_told_and_then_at_growing_distances() -> None:
    assert told_at([shell("ls")] * 2) == []
    assert told_at([shell("ls")] * 30) == [3, 6, 12, 24]


def test_a_poll_whose_result_changes_is_not() -> None:
    assert told_at([shell("cat progress", f"{number}.5 %") for number in range(30)]) == []
    assert told_at([shell("date", f"12:00:{number:02}") for number in range(30)]) == []


def test_a_test_run_after_each_of_several_edits_is_not() -> None:
    work = [call for number in range(9) for call in (shell(f"edit {number}"), shell("pytest", "1 failed in 0.1s"))]
    assert told_at(work) == []


def test_how_long_it_took_does_not_count() -> None:
    assert told_at([shell("pytest", f"1 failed in 0.0{number}s") for number in range(1, 4)]) == [3]


def test_two_calls_in_turn_are_a_loop_too_and_work_in_between_ends_it() -> None:
    assert told_at([shell("a"), shell("b")] * 4) == [5, 8]
    assert told_at([*[shell("a")] * 3, shell("new"), *[shell("a")] * 2]) == [3]


def test_calls_of_one_turn_count_each_and_what_we_add_to_the_results_does_not() -> None:
    watched = RepeatedCalls()
    assert watched.update(step(1, shell("a"), shell("b"))) is None
    assert watched.update(step(2, shell("a"), shell("b"), notice="[Budget left: 3 of 4 turns.]")) is None
    assert watched.update(step(3, shell("a"), shell("b"))) == {"call": 'shell {"command": "a"}', "times": 3}


def test_the_breaker_says_it_once_and_not_again_after_a_restart() -> None:
    breaker = BehaviourBreaker(MonitorSet())
    steps = [step(number, shell("ls -l")) for number in range(1, 4)]
    for each in steps:
        assert breaker.take_trip() is None
        breaker(each)
    trip = breaker.take_trip()
    assert trip is not None
    assert trip.rung == "nudge"
    assert "3 times" in trip.nudge
    assert "ls -l" in trip.nudge
    assert breaker.take_trip() is None
    told = Step.model_validate(
        {"step_id": 4, "source": "user", "message": trip.nudge, "extra": {"gametape": {"events": [trip.to_dict()]}}}
    )
    again = BehaviourBreaker(MonitorSet())
    again.replay([*steps, told])
    assert again.take_trip() is None


def _alarms_at(steps: Sequence[ObservedStep]) -> list[int]:
    watched = RepeatedSteps()
    return [number for number, seen in enumerate(steps, start=1) if watched.update(seen)]


def _seen(command: str, result: str = "same", session: str = "a") -> ObservedStep:
    return ObservedStep("", (ObservedAction("shell", command),), result, session=session)


def test_five_in_a_row_are_an_alarm_in_a_log_and_nothing_less() -> None:
    assert _alarms_at([_seen("ls")] * 4) == []
    assert _alarms_at([_seen("ls")] * 60) == [5, 10, 20, 40]
    assert _alarms_at([*[_seen("ls")] * 4, _seen("pwd"), *[_seen("ls")] * 4]) == []
    assert _alarms_at([*[_seen("ls")] * 4, ObservedStep("So.", session="a"), *[_seen("ls")] * 4]) == []
    assert _alarms_at([_seen("cat progress", f"{number} %") for number in range(30)]) == []
    assert _alarms_at([ObservedStep("Standing by.")] * 30) == []


def test_sessions_that_take_turns_are_counted_apart() -> None:
    assert _alarms_at([_seen("ls", session=f"{number % 3}") for number in range(12)]) == []
    assert _alarms_at([_seen("ls", session=f"{number % 2}") for number in range(10)]) == [9, 10]
