"""What is usual, and what is ringing, is remembered over a restart."""

from gametape.core.config import AlarmConfig
from gametape.train.alarms import Alarm, Alarms, Health


def _names(alarms: list[Alarm]) -> list[str]:
    return [alarm.name for alarm in alarms]


def test_a_restart_remembers_the_start_and_what_is_ringing() -> None:
    first = Alarms(AlarmConfig())
    first.look(Health(length=4.0))
    first.hear([Alarm("watch: phrase", 2e5, 1e5, "look")])
    again = Alarms(AlarmConfig())
    again.restore(first.state())
    assert again.hear([Alarm("watch: phrase", 3e5, 1e5, "look")]) == []
    assert _names(again.look(Health(length=9.0))) == ["length"]


def test_hints_that_come_back_and_teachers_that_know_no_better_are_told() -> None:
    alarms = Alarms(AlarmConfig())
    assert _names(alarms.look(Health(hint_leak=0.005, teacher_gain=0.5))) == []
    assert _names(alarms.look(Health(hint_leak=0.02, teacher_gain=-0.1))) == ["teacher", "hint_leak"]


def test_what_is_forgotten_is_told_once() -> None:
    alarms = Alarms(AlarmConfig())
    assert _names(alarms.look(Health(forgotten=0.005))) == []
    assert _names(alarms.look(Health(forgotten=0.04))) == ["forgotten"]
    assert _names(alarms.look(Health(forgotten=0.2))) == []
