"""Properties of the cadence, over clocks that jump, machines that sleep and processes that restart."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from gametape.desk.heartbeats.cadence import (
    AdaptiveCadence,
    Cadence,
    CadenceState,
    FixedCadence,
    adapt_interval,
    mark_taken,
    next_tick,
)
from gametape.desk.heartbeats.wall_clock import CronCadence, DailyHours

ZONES = [ZoneInfo(name) for name in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC")]
EVERY_DAY = frozenset(range(7))
DAY = 86_400.0
SPRING = datetime(2026, 3, 27, tzinfo=UTC).timestamp()
"""Two days before Berlin's clocks are put forward; Lord Howe's are put back a week later."""
AUTUMN = datetime(2026, 10, 23, tzinfo=UTC).timestamp()

zones = st.sampled_from(ZONES)
expressions = st.sampled_from(
    [
        "*/10 * * * *",
        "0 * * * *",
        "30 2 * * *",
        "15,45 1-3 * * *",
        "0 9 * * 1-5",
        "*/20 2 * * *",
        "5 */2 * * *",
        "0 0 1 * *",
    ]
)
clock_times = st.builds(time, st.integers(0, 23), st.sampled_from([0, 15, 30, 45]))
hours = st.builds(DailyHours, clock_times, clock_times, st.sets(st.integers(0, 6), min_size=1).map(frozenset), zones)
cadences: st.SearchStrategy[Cadence] = st.one_of(
    st.none(),
    st.builds(FixedCadence, st.floats(1, 3 * DAY)),
    st.builds(CronCadence, expressions, zones),
    st.builds(lambda fast, more: AdaptiveCadence(fast, fast * more), st.floats(1, 3600), st.floats(1, 100)),
)
moments = st.one_of(
    st.floats(SPRING, SPRING + 12 * DAY),
    st.floats(AUTUMN, AUTUMN + 12 * DAY),
    st.integers(0, 50).map(lambda n: SPRING + n * 1800),
)


@given(
    cadences,
    st.none() | hours,
    moments,
    st.lists(st.tuples(st.floats(0, 2 * DAY), st.booleans(), st.booleans()), max_size=30),
)
def test_ticks_only_go_forward_within_hours_and_once(
    cadence: Cadence, open_: DailyHours | None, begun: float, course: list[tuple[float, bool, bool]]
) -> None:
    state, now = CadenceState(begun), begun
    for passed, event, eventful in course:
        now += passed
        tick = next_tick(cadence, open_, state, now, event)
        assert tick.at is None or tick.at > (state.anchor if state.last is None else state.last) or tick.at == now
        assert tick.due == (tick.at is not None and tick.at <= now)
        if tick.due:
            assert open_ is None or open_.contains(now)
            state = mark_taken(cadence, state, tick)
            assert not next_tick(cadence, open_, state, now, False).due, "missed ticks are made up for once"
            state = adapt_interval(cadence, state, eventful)
            if isinstance(cadence, AdaptiveCadence):
                assert cadence.fastest <= (state.interval or 0) <= cadence.slowest


@given(cadences, st.none() | hours, moments, st.lists(st.floats(0, DAY), max_size=10))
def test_what_is_foreseen_does_not_move_while_one_waits(
    cadence: Cadence, open_: DailyHours | None, begun: float, waits: list[float]
) -> None:
    state = CadenceState(begun)
    foreseen = next_tick(cadence, open_, state, begun, False)
    if foreseen.at is None:
        return
    for wait in sorted(waits):
        now = min(begun + wait, foreseen.at - 0.001)
        if now >= begun:
            assert next_tick(cadence, open_, state, now, False).at == foreseen.at
    at_last = next_tick(cadence, open_, state, foreseen.at, False)
    assert at_last.due
    assert at_last.at == foreseen.at


@given(cadences, moments, st.floats(0, 5 * DAY))
def test_a_clock_set_back_ticks_nothing_twice(cadence: Cadence, begun: float, back: float) -> None:
    state = CadenceState(begun)
    tick = next_tick(cadence, None, state, begun + 3 * DAY, False)
    if tick.due:
        state = mark_taken(cadence, state, tick)
        for event in (False, True):
            again = next_tick(cadence, None, state, begun + 3 * DAY - back, event)
            assert again.at is None or again.at > (tick.at or 0)


@given(expressions, zones, moments)
def test_cron_looks_the_same_from_both_sides(expression: str, zone: ZoneInfo, moment: float) -> None:
    cron = CronCadence(expression, zone)
    following = cron.after(moment)
    assert following > moment
    assert cron.latest(following, moment) == following
    assert cron.latest(following - 0.001, moment) is None
    assert cron.after(following - 0.001) == following


@given(hours, moments, st.floats(0, 1))
@settings(max_examples=200)
def test_an_opening_is_the_first_moment_that_is_open(open_: DailyHours, moment: float, share: float) -> None:
    opening = open_.next_opening(moment)
    assert opening >= moment
    assert open_.contains(opening)
    between = moment + share * (opening - moment)
    assert between == opening or not open_.contains(between)


def instants(expression: str, zone: str, day: str) -> list[str]:
    there = ZoneInfo(zone)
    begun = datetime.fromisoformat(day).replace(tzinfo=there).timestamp()
    found, cron = [], CronCadence(expression, there)
    moment = cron.after(begun - 1)
    while moment < begun + DAY:
        found.append(
            datetime.fromtimestamp(moment, there).isoformat()[11:19]
            + datetime.fromtimestamp(moment, there).isoformat()[19:]
        )
        moment = cron.after(moment)
    return found


def test_an_hour_that_does_not_exist_is_made_up_for() -> None:
    assert instants("30 2 * * *", "Europe/Berlin", "2026-03-29") == ["03:30:00+02:00"]
    assert instants("*/30 1-3 * * *", "Europe/Berlin", "2026-03-29") == [
        "01:00:00+01:00", "01:30:00+01:00", "03:00:00+02:00", "03:30:00+02:00",
    ]  # fmt: skip


def test_an_hour_that_comes_twice_is_ticked_once_by_name_and_twice_by_every_hour() -> None:
    assert instants("30 2 * * *", "Europe/Berlin", "2026-10-25")[0] == "02:30:00+02:00"
    assert "02:30:00+01:00" not in instants("30 2 * * *", "Europe/Berlin", "2026-10-25")
    assert instants("30 * * * *", "Europe/Berlin", "2026-10-25")[1:4] == [
        "01:30:00+02:00", "02:30:00+02:00", "02:30:00+01:00",
    ]  # fmt: skip


@dataclass
class Simulated:
    """A heartbeat of the three days, and what it did."""

    cadence: Cadence
    hours: DailyHours | None
    asks: bool
    """Whether its guard lets it go on when nothing happened."""
    state: CadenceState
    foreseen: float | None = 0.0
    ticks: list[float] = field(default_factory=list)
    tokens: int = 0


def twenty(begun: float) -> list[Simulated]:
    berlin = ZoneInfo("Europe/Berlin")
    office = DailyHours(time(9), time(18), frozenset(range(5)), berlin)
    night = DailyHours(time(22), time(6), EVERY_DAY, berlin)
    cadences: list[Cadence] = [
        FixedCadence(60), FixedCadence(600), FixedCadence(3600), AdaptiveCadence(60, 3600), AdaptiveCadence(10, 600),
        CronCadence("0 9 * * 1-5", berlin), CronCadence("30 2 * * *", berlin), CronCadence("*/15 * * * *", berlin),
        None, None,
    ]  # fmt: skip
    return [
        Simulated(cadence, open_, False, CadenceState(begun))
        for cadence in cadences
        for open_ in (None, office if cadence is None or isinstance(cadence, FixedCadence) else night)
    ]


def live_through(begun: float, events: dict[float, int], asleep: list[tuple[float, float]]) -> list[Simulated]:
    """Three days at a look every 30 s: within `asleep` nobody looks; at its end all is read from what was stored."""
    beats, now = twenty(begun), begun
    while now < begun + 3 * DAY:
        now += 30
        now = next((end for start, end in asleep if start <= now < end), now)
        seen = {events[moment] for moment in events if now - 30 < moment <= now}
        for number, beat in enumerate(beats):
            if number not in seen and (beat.foreseen is None or now < beat.foreseen):
                continue
            tick = next_tick(beat.cadence, beat.hours, beat.state, now, number in seen)
            beat.foreseen = 0.0 if tick.due else tick.at
            if tick.due and tick.at is not None:
                beat.ticks.append(tick.at)
                beat.tokens += 100 if number in seen or beat.asks else 0
                beat.state = adapt_interval(beat.cadence, mark_taken(beat.cadence, beat.state, tick), number in seen)
    return beats


def test_three_days_of_twenty_heartbeats() -> None:
    begun = datetime(2026, 10, 24, 6, tzinfo=UTC).timestamp()  # the clocks are put back in the first night
    suspended = [(begun + 10 * 3600, begun + 16 * 3600), (begun + 40 * 3600, begun + 41 * 3600)]
    beats = live_through(begun, {begun + 30 * 3600: 16, begun + 50 * 3600: 18}, suspended)
    assert len(beats) == 20
    for beat in beats:
        assert beat.ticks == sorted(set(beat.ticks)), "no tick twice"
        if isinstance(beat.cadence, AdaptiveCadence):
            gaps = [b - a for a, b in zip(beat.ticks, beat.ticks[1:], strict=False)]
            assert all(gap >= beat.cadence.fastest for gap in gaps)
        for start, end in suspended:
            assert sum(start < tick <= end for tick in beat.ticks) <= 1, "of what was missed only the last"
    minutely = beats[0]
    assert len(minutely.ticks) == 3 * 1440 - 6 * 60 - 60
    assert [len(beats[number].ticks) for number in (12, 16, 17)] == [3, 1, 0]
    assert {beats[16].tokens, beats[18].tokens} == {100}
    assert sum(beat.tokens for beat in beats) == 200, "a day on which nothing happens spends no token"
