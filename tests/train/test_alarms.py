"""What is usual, and what is ringing, is remembered over a restart."""

from gametape.core.config import AlarmConfig
from gametape.train.alarms import AlarmMonitor, TrainingAlarm, TrainingHealth


def _names(alarms: list[TrainingAlarm]) -> list[str]:
    return [alarm.name for alarm in alarms]


def test_a_restart_remembers_the_start_and_what_is_ringing() -> None:
    first = AlarmMonitor(AlarmConfig())
    first.check_health(TrainingHealth(length=4.0))
    first.filter_new([TrainingAlarm("watch: phrase", 2e5, 1e5, "look")])
    again = AlarmMonitor(AlarmConfig())
    again.restore(first.state())
    assert again.filter_new([TrainingAlarm("watch: phrase", 3e5, 1e5, "look")]) == []
    assert _names(again.check_health(TrainingHealth(length=9.0))) == ["length"]


def test_hints_that_come_back_and_teachers_that_know_no_better_are_told() -> None:
    alarms = AlarmMonitor(AlarmConfig())
    assert _names(alarms.check_health(TrainingHealth(hint_leak=0.005, teacher_gain=0.5))) == []
    assert _names(alarms.check_health(TrainingHealth(hint_leak=0.02, teacher_gain=-0.1))) == ["teacher", "hint_leak"]


def test_what_is_forgotten_is_told_once() -> None:
    alarms = AlarmMonitor(AlarmConfig())
    assert _names(alarms.check_health(TrainingHealth(forgotten=0.005))) == []
    assert _names(alarms.check_health(TrainingHealth(forgotten=0.04))) == ["forgotten"]
    assert _names(alarms.check_health(TrainingHealth(forgotten=0.2))) == []
