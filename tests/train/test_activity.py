"""What time went into: kinds overlap, windows follow each other, and nothing counts twice."""

import pytest

from gametape.train.activity import ActivityClock, ActivityLedger, ActivityReport, EpisodePhases, union_length


class Now:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def test_what_several_do_at_once_counts_once() -> None:
    assert union_length([(0, 2), (1, 3), (5, 6), (5, 5.5)]) == 4
    now = Now()
    clock = ActivityClock(now)
    clock.begin("tools")
    now.time += 1
    with clock.during("tools"):
        now.time += 2
    clock.end("tools")
    now.time += 3
    assert clock.take().intervals == {"tools": [(100.0, 103.0)]}
    assert clock.take().intervals == {}


def test_what_is_under_way_is_cut_in_two_by_a_report() -> None:
    now = Now()
    clock = ActivityClock(now)
    clock.begin("decode")
    now.time += 1
    assert clock.take(in_flight=3) == ActivityReport(101.0, {"decode": [(100.0, 101.0)]}, 3)
    now.time += 1
    clock.end("decode")
    assert clock.take().intervals == {"decode": [(101.0, 102.0)]}


def test_idle_is_when_the_network_neither_samples_nor_learns() -> None:
    ledger = ActivityLedger(0.0)
    ledger.add(ActivityReport(10.0, {"decode": [(0.0, 4.0)], "tools": [(0.0, 10.0)]}))
    ledger.add(ActivityReport(10.0, {"learn": [(3.0, 6.0)]}))
    shares = ledger.close_window(10.0).shares
    assert shares == {
        "decode": 0.4,
        "tools": 1.0,
        "prepare": 0.0,
        "verify": 0.0,
        "coach": 0.0,
        "learn": 0.3,
        "idle": 0.4,
    }


def test_what_reaches_beyond_a_window_counts_for_the_next() -> None:
    """As where another process has reported up to another time."""
    ledger = ActivityLedger(0.0)
    ledger.add(ActivityReport(5.0, {"learn": [(3.0, 5.0)]}))
    first = ledger.close_window(4.0)
    ledger.add(ActivityReport(8.0, {"decode": [(4.0, 8.0)]}))
    second = ledger.close_window(8.0)
    assert (first.wall, first.seconds["learn"], first.seconds["idle"]) == (4.0, 1.0, 3.0)
    assert (second.wall, second.seconds["learn"], second.seconds["idle"]) == (4.0, 1.0, 0.0)
    first.add(second)
    assert first.shares["idle"] == pytest.approx(3 / 8)


def test_a_rollout_is_at_its_tools_when_it_does_not_wait_for_the_model() -> None:
    now = Now()
    clock = ActivityClock(now)
    phases = EpisodePhases(clock)
    with phases.playing():
        now.time += 1
        with phases.asking():
            now.time += 5
        now.time += 2
    with phases.asking(), phases.scoring():
        now.time += 4
    report = clock.take()
    assert report.intervals == {"tools": [(100.0, 101.0), (106.0, 108.0)], "verify": [(108.0, 112.0)]}
