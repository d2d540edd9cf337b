"""What is kept of a watch stays small, however long the log."""

from itertools import islice
from pathlib import Path

from gametape.watch.reading import Placed
from gametape.watch.report import Course, Report, plot
from gametape.watch.seen import Seen
from gametape.watch.watching import Watch
from tests.watch.logs import healthy


def test_alarms_in_a_row_are_one_episode() -> None:
    watch = Watch()
    watch.learn(islice(healthy(), 300))
    report = Report(watch)
    begun = [
        episode.alarm.monitor
        for number in range(1, 301)
        for episode in report.look(Placed(Path("log"), number, Seen("Standing by.")))
    ]
    assert begun[0] == "phrase"
    assert len(begun) == len(set(begun))
    alarm = report.plain()["alarms"][0]
    assert alarm["times"] > 5
    assert alarm["step"] <= 50
    assert alarm["until"] > 250


def test_blank_lines_count_and_say_nothing() -> None:
    watch = Watch()
    report = Report(watch)
    report.look(Placed(Path("log"), 1, None))
    assert (report.steps, watch.steps) == (1, 0)


def test_a_course_keeps_its_peaks_in_few_columns() -> None:
    course = Course()
    for number in range(100_000):
        course.add(200.0 if number == 70_000 else 1.0)
    line = course.line(threshold=100.0)
    assert len(line) <= 60
    assert line.count("!") == 1
    assert 0.6 < line.index("!") / len(line) < 0.8


def test_a_plot_leaves_out_what_saw_nothing() -> None:
    busy, quiet = Course(), Course()
    busy.add(50.0)
    quiet.add(0.0)
    assert plot({"busy": busy, "quiet": quiet}, 100.0) == ["busy   ▆"]
