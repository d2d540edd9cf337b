"""What is kept of a watch stays small, however long the log."""

from itertools import islice
from pathlib import Path

from gametape.watch.log_reader import LoggedStep
from gametape.watch.monitor_set import MonitorSet
from gametape.watch.observed_step import ObservedStep
from gametape.watch.report import Sparkline, WatchReport, plot_sparklines
from tests.watch.logs import healthy


def test_alarms_in_a_row_are_one_episode() -> None:
    watch = MonitorSet()
    watch.learn(islice(healthy(), 300))
    report = WatchReport(watch)
    begun = [
        episode.alarm.monitor
        for number in range(1, 301)
        for episode in report.observe(LoggedStep(Path("log"), number, ObservedStep("Standing by.")))
    ]
    assert "phrase" in begun
    assert len(begun) == len(set(begun))
    alarm = report.to_dict()["alarms"][0]
    assert alarm["times"] > 5
    assert alarm["step"] <= 50
    assert alarm["until"] > 250


def test_blank_lines_count_and_say_nothing() -> None:
    watch = MonitorSet()
    report = WatchReport(watch)
    report.observe(LoggedStep(Path("log"), 1, None))
    assert (report.steps, watch.steps) == (1, 0)


def test_a_course_keeps_its_peaks_in_few_columns() -> None:
    course = Sparkline()
    for number in range(100_000):
        course.add(200.0 if number == 70_000 else 1.0)
    line = course.line(threshold=100.0)
    assert len(line) <= 60
    assert line.count("!") == 1
    assert 0.6 < line.index("!") / len(line) < 0.8


def test_a_plot_leaves_out_what_saw_nothing() -> None:
    busy, quiet = Sparkline(), Sparkline()
    busy.add(50.0)
    quiet.add(0.0)
    assert plot_sparklines({"busy": busy, "quiet": quiet}, 100.0) == ["busy   ▆"]
