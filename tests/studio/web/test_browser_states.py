"""What is missing, broken, deleted meanwhile or empty is said in a real browser, in one line and without an error."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from .chromium import Chromium
from .site import open_site, served, step_of, update_line, write_tape

pytestmark = pytest.mark.slow
REFUSED = ("Failed to load resource",)


@pytest.fixture
def studio(tmp_path: Path, chromium: Chromium) -> Iterator[str]:
    chromium.requested(), chromium.complaints()
    with served(open_site(tmp_path / "runs", tmp_path / "home")) as address:
        yield address
        chromium.check_quiet(address, REFUSED)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = tmp_path / "runs" / "one"
    run.mkdir(parents=True)
    (run / "metrics.jsonl").write_text(update_line(1))
    (run / "config.toml").write_text('arm = "rlvr"\n')
    return run


def test_without_runs_it_says_the_command_that_makes_one(chromium: Chromium, studio: str) -> None:
    chromium.go(studio)
    chromium.wait_for_text("gametape demo")
    chromium.go(f"{studio}desk")
    chromium.wait_for_text("gametape goal run --help")


def test_what_is_not_there_is_said(chromium: Chromium, studio: str, run: Path) -> None:
    for page in (
        "run?run=two",
        "tape?run=one&rollout=no",
        "group?run=one&group=no",
        "nothing",
        "rollouts?run=one&first=x",
    ):
        chromium.go(studio + page)
        chromium.wait("document.querySelector('[role=alert]')?.innerText.length > 10")
        assert "Traceback" not in chromium.text()


@pytest.mark.parametrize(
    "broken", ["", "{", "[1, 2]", '{"schema_version": "ATIF-v1.7"}', '{"steps": "x"}', "\x00\xff", "[" * 5000]
)
def test_a_broken_rollout_is_said_in_its_row_and_on_its_tape(
    chromium: Chromium, studio: str, run: Path, broken: str
) -> None:
    (run / "trajectories").mkdir()
    (run / "trajectories" / "bad.json").write_text(broken)
    write_tape(run / "trajectories" / "good.json", [step_of(1)])
    chromium.go(f"{studio}rollouts?run=one")
    chromium.wait_for_text("broken")
    assert "good" in chromium.text()
    chromium.go(f"{studio}tape?run=one&rollout=bad")
    chromium.wait("document.querySelector('[role=alert]')?.innerText.includes('bad.json')")


def test_a_run_with_broken_files_is_listed(chromium: Chromium, studio: str, run: Path) -> None:
    (run / "config.toml").write_text("= what\n")
    (run / "metrics.jsonl").write_text('{"kind": "update"\n[1]\n' + update_line(2, reward=0.25) + '{"half')
    chromium.go(studio)
    chromium.wait_for_text("broken", "[data-cell=state]")
    chromium.go(f"{studio}run?run=one")
    chromium.wait_for_text("reward 0.25", "main")


def test_a_rollout_that_is_deleted_or_replaced_while_it_is_read_is_said(
    chromium: Chromium, studio: str, run: Path
) -> None:
    path = write_tape(run / "trajectories" / "long.json", [step_of(number) for number in range(1, 301)])
    chromium.go(f"{studio}tape?run=one&rollout=long")
    chromium.wait_for_text("said 1")
    path.unlink()
    chromium.run("location.hash = '#step=250'")
    chromium.wait_for_text("deleted meanwhile")


def test_an_empty_run_and_an_empty_tape_say_so(chromium: Chromium, studio: str, run: Path) -> None:
    (run / "metrics.jsonl").write_text("")
    write_tape(run / "trajectories" / "none.json", [])
    chromium.go(f"{studio}run?run=one")
    chromium.wait_for_text("There are no figures yet")
    chromium.go(f"{studio}tape?run=one&rollout=none")
    chromium.wait_for_text("No step is recorded yet")
    chromium.press("j", "k", "n")
    for page in ("tasks", "integrity", "costs", "behaviour", "evaluation"):
        chromium.go(f"{studio}{page}?run=one")
        chromium.wait("document.querySelector('h1')")


def test_a_long_tape_has_only_the_rows_that_are_near(chromium: Chromium, studio: str, run: Path) -> None:
    write_tape(run / "trajectories" / "long.json", [step_of(number) for number in range(1, 2_001)])
    chromium.go(f"{studio}tape?run=one&rollout=long")
    rows = "document.querySelectorAll('article.step').length"
    chromium.wait(rows)
    for step in (1999, 1000, 3):
        chromium.run("location.hash = `#step=${arguments[0]}`", step)
        chromium.wait(f"document.querySelector('article.step.current')?.ariaLabel.startsWith('step {step},')")
        chromium.wait(f"{rows} < 200")
    assert json.loads(chromium.run("return JSON.stringify(location.hash)")) == "#step=3"
