"""What a heartbeat's file may say, and the one line that says what is wrong with it."""

import pytest

from gametape.core.errors import BadInput
from gametape.desk.heartbeats.cadence import AdaptiveCadence, FixedCadence
from gametape.desk.heartbeats.config import HeartbeatConfig, check_name, parse_config
from gametape.desk.heartbeats.wall_clock import CronCadence

GOOD = "model: smollm2\ncadence: {every: 10m}"


def plan(matter: str, body: str = "Look at it.") -> HeartbeatConfig:
    return parse_config(f"---\n{matter}\n---\n{body}\n", "beat.md")


def test_every_cadence_is_understood() -> None:
    assert plan(GOOD).cadence_rule == FixedCadence(600)
    assert plan("model: m\ncadence: {every: 90}").cadence_rule == FixedCadence(90)
    assert plan("model: m\ncadence: {adaptive: {fastest: 1m, slowest: 1h}}").cadence_rule == AdaptiveCadence(60, 3600)
    cron = plan("model: m\ntimezone: Europe/Berlin\ncadence: {cron: '0 9 * * 1-5'}").cadence_rule
    assert isinstance(cron, CronCadence)
    assert cron.zone.key == "Europe/Berlin"
    assert plan("model: m\nevent: {heartbeat: other}").cadence_rule is None


def test_hours_are_read_as_they_are_written() -> None:
    for written in ("09:30", "'09:30'", "9:30"):
        hours = plan(f"{GOOD}\nactive_hours: {{from: {written}, to: '18:00', days: [mon, fri]}}").hours
        assert hours is not None
        assert (hours.start.hour, hours.start.minute, hours.days) == (9, 30, {0, 4})


def test_a_plan_survives_being_kept() -> None:
    full = plan(
        f"{GOOD}\nworkspace: /tmp\nguard: 'true'\nactive_hours: {{from: 09:30, to: 18:00}}\nbudget: {{usd: 0.5}}"
    )
    assert HeartbeatConfig.model_validate_json(full.model_dump_json(by_alias=True)) == full


@pytest.mark.parametrize(
    ("matter", "output"),
    [
        ("model: m", "would never tick"),
        ("model: 2026-13-45", "not YAML"),
        ("model: " + "[" * 1000, "not YAML"),
        (f"{GOOD}\ncadance: 3", "cadance: there is no such setting"),
        ("model: m\ncadence: {every: 0}", "cadence.every: "),
        ("model: m\ncadence: {every: nan}", "cadence.every: "),
        ("model: m\ncadence: {every: 10m, cron: '* * * * *'}", "one of every, cron, adaptive"),
        ("model: m\ncadence: {cron: '0 9 * *'}", "not a cron expression"),
        ("model: m\ncadence: {cron: '99 9 * * *'}", "not a cron expression"),
        ("model: m\ncadence: {cron: '0 0 30 2 *'}", "names no day"),
        ("model: m\ncadence: {adaptive: {fastest: 1h, slowest: 1m}}", "fastest must not be slower"),
        (f"{GOOD}\ntimezone: Mars/Olympus", "not a time zone"),
        (f"{GOOD}\ntimezone: ../../etc/passwd", "not a time zone"),
        (f"{GOOD}\nguard: 'true'", "need a workspace"),
        (f"{GOOD}\nevent: {{mcp: {{server: x, tool: y}}}}", "event.mcp"),
        (f"{GOOD}\nevent: {{}}", "one or more of files"),
        (f"{GOOD}\nbudget: {{tokens: -1}}", "budget.tokens: "),
        (f"{GOOD}\nactive_hours: {{from: 25:00, to: 26:00}}", "active_hours.from"),
        ("[1, 2]", "not a table"),
        ("a: [", "not YAML"),
        ("a: !!python/object/apply:os.system ['true']", "not YAML"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(matter: str, output: str) -> None:
    with pytest.raises(BadInput) as raised:
        plan(matter)
    assert output in str(raised.value)
    assert str(raised.value).startswith("beat.md: ")
    assert "\n" not in str(raised.value)


def test_a_file_without_front_matter_or_words_is_refused() -> None:
    for content in ("Look at it.", "---\nmodel: m\n", f"---\n{GOOD}\n---\n", ""):
        with pytest.raises(BadInput):
            parse_config(content, "beat.md")


def test_a_name_is_no_path() -> None:
    assert check_name("every-morning-2") == "every-morning-2"
    for name in ("", "..", "a/b", "A", "a b", "-a", "x" * 65, "a\n"):
        with pytest.raises(BadInput):
            check_name(name)
