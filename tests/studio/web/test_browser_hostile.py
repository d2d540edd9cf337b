"""A hostile record in a real browser: sixty injections in every text that it has. None runs, none restyles a page, none
is computed, nothing is fetched, and the content security policy has nothing to report."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from gametape.desk.desk import open_desk
from gametape.desk.vault.vault import NoteWriter, Vault
from gametape.studio.web.export import write_export

from .chromium import Chromium, script
from .injections import COMPUTED, INJECTIONS, file_name, hostile_trajectory, write_hostile_run
from .site import open_site, served

pytestmark = pytest.mark.slow
NUMBERS = range(len(INJECTIONS))
NEW = script("strange")
EVERYTHING_OPEN = script("open")
EVERY_CHOICE = script("choices")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`all` has every injection in its settings, its log and its rollouts; each other run has one in its name too."""
    runs = tmp_path_factory.mktemp("hostile") / "runs"
    write_hostile_run(runs / "all", NUMBERS)
    for number in NUMBERS:
        write_hostile_run(runs / file_name(number), [number])
    _write_goal(runs / "goal")
    _write_evaluation(runs / "evaluation")
    return runs


def _write_goal(goal: Path) -> None:
    goal.mkdir()
    text = "\n".join(INJECTIONS)
    told = dict.fromkeys(("instruction", "success", "model", "reason", "assurance", "branch"), text)
    tampering = [dict.fromkeys(("rule", "file", "evidence"), one) for one in INJECTIONS]
    attempts = [{"n": 1, "criterion": {"passed": one}, "tokens": one, "tampering": tampering} for one in INJECTIONS]
    (goal / "goal.json").write_text(json.dumps(told))
    (goal / "result.json").write_text(json.dumps(told | {"reached": False, "attempts": attempts}))
    (goal / "trajectory.json").write_text(json.dumps(hostile_trajectory(0)))
    (goal / "patch.diff").write_text("--- a\n+++ b\n+" + "\n+".join(INJECTIONS), errors="replace")


def _write_evaluation(evaluation: Path) -> None:
    evaluation.mkdir()
    lines = [{"suite": INJECTIONS[0], "model": INJECTIONS[0]}] + [
        {"task": one, "outcome": "failed", "reason": one, "passed": False, "tokens": 3, "flags": [one]}
        for one in INJECTIONS
    ]
    (evaluation / "attempts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rate = {"rate": 0.25, "low": 0.2, "high": 0.3}
    points = [{"horizon": at, "step": at, "rate": 0.5, "s": 0.5, "low": 0.4, "high": 0.6} for at in (1, 2)]
    points += [{"horizon": one, "step": one, "rate": one, "s": one} for one in INJECTIONS]
    curves = {"by_horizon": points, "survival": points, "suite": INJECTIONS[1], "suite_digest": INJECTIONS[2]}
    report = curves | {"model": INJECTIONS[0], "k": 1, "pass_at_k": 0.25, "pass_hat_k": 0.25, "success": rate}
    (evaluation / "report.json").write_text(json.dumps(report))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A desk with a draft and a changed note for every injection, and the conversations of four."""
    home = tmp_path_factory.mktemp("hostile-home")
    vault = Vault.init(home / "vault")
    for number in (0, 7, 20, 42):
        thread = home / "threads" / f"thread-{number}"
        thread.mkdir(parents=True)
        (thread / "thread.json").write_text(json.dumps({"title": INJECTIONS[number]}))
        (thread / "trajectory.json").write_text(json.dumps(hostile_trajectory(number)))
    with open_desk(home) as desk:
        for number, text in enumerate(INJECTIONS):
            printable = text.encode("utf-8", "replace").decode().replace("\x00", "?")
            desk.outbox.draft(f"k{number}", "thread-1", "ada@example.org", printable.replace("\n", " "), printable)
            vault.write(f"notes/n{number}", printable, NoteWriter("t", 1, f"t/{number}"))
    return home


@pytest.fixture(scope="module")
def studio(runs: Path, home: Path) -> Iterator[str]:
    with served(open_site(runs, home)) as address:
        yield address


def check(chromium: Chromium, studio: str, address: str) -> None:
    """Open a page, open and touch all that is on it, and see that it is only itself."""
    chromium.go(address)
    chromium.wait("document.querySelectorAll('[aria-busy=true]').length === 0")
    chromium.run(EVERYTHING_OPEN)
    chromium.run_async(EVERY_CHOICE)
    chromium.run(EVERYTHING_OPEN)
    assert chromium.run(NEW) == [], address
    assert COMPUTED not in chromium.text()
    assert chromium.run("return getComputedStyle(document.body).display") == "block"
    chromium.check_quiet(studio, known=("Failed to load resource",))


@pytest.mark.parametrize("number", NUMBERS)
def test_an_injection_is_text_on_its_tape_and_in_an_address(chromium: Chromium, studio: str, number: int) -> None:
    name, text = file_name(number), INJECTIONS[number]
    check(chromium, studio, f"{studio}tape?{urlencode({'run': name, 'rollout': f'{name}.000'})}")
    words = urlencode({"run": text, "rollout": text, "message": text}, errors="replace")
    check(chromium, studio, f"{studio}desk?{words}#{words}")
    check(chromium, studio, f"{studio}tape?{words}#step={words}")


@pytest.mark.parametrize("page", ["rollouts", "tasks", "integrity", "costs", "behaviour", "evaluation", "run"])
def test_all_injections_are_texts_on_the_pages_about_a_run(chromium: Chromium, studio: str, page: str) -> None:
    check(chromium, studio, f"{studio}{page}?run=all")


@pytest.mark.parametrize(
    "page",
    [
        "",
        "desk",
        "result?run=goal",
        "evaluation?run=evaluation",
        "evaluations?run=evaluation&run=evaluation",
        "integrity?run=evaluation",
    ],
)
def test_all_injections_are_texts_beside_each_other(chromium: Chromium, studio: str, page: str) -> None:
    check(chromium, studio, studio + page)


@pytest.mark.parametrize("first", range(0, len(INJECTIONS), 12))
def test_names_of_runs_and_prompts_are_texts(chromium: Chromium, studio: str, first: int) -> None:
    names = [file_name(number) for number in NUMBERS[first : first + 12]]
    check(chromium, studio, f"{studio}run?{urlencode([('run', name) for name in names])}")
    check(chromium, studio, f"{studio}group?{urlencode({'run': 'all', 'group': names[0]})}")
    sides = [part for name in names for part in (("run", name), ("rollout", f"{name}.000"))]
    check(chromium, studio, f"{studio}compare?{urlencode(sides)}")


def test_the_texts_are_there_as_they_were_written(chromium: Chromium, studio: str) -> None:
    for number in (0, 7, len(INJECTIONS) - 4):
        name = file_name(number)
        chromium.go(f"{studio}tape?{urlencode({'run': name, 'rollout': f'{name}.000'})}")
        chromium.wait_for_text(INJECTIONS[number].strip(), "article.step .message")


def test_injections_are_texts_in_an_exported_file(chromium: Chromium, runs: Path, tmp_path: Path) -> None:
    chromium.requested(), chromium.complaints()
    out = write_export(runs / "all", tmp_path / "out.html").path
    for number in NUMBERS:
        check(chromium, "file://", f"{out.as_uri()}#{urlencode({'rollout': f'{file_name(number)}.000', 'step': '2'})}")
