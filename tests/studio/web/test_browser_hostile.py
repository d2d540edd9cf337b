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

from .chromium import Chromium
from .injections import COMPUTED, INJECTIONS, file_name, hostile_trajectory, write_hostile_run
from .site import open_site, served

pytestmark = pytest.mark.slow
NUMBERS = range(len(INJECTIONS))
NEW = """
const own = location.origin === "null" ? "file:" : location.origin;
const strange = [...document.querySelectorAll("img, iframe, object, embed, base, template, video, audio, math, marquee, portal, meta[http-equiv=refresh]")];
const scripts = [...document.scripts].filter((one) => one.src ? new URL(one.src).origin !== own : one.id !== "data" && one.type !== "module");
const styles = [...document.querySelectorAll("style, link[rel=stylesheet]")].filter((one) => one.sheet?.cssRules.length < 20);
const handlers = [...document.querySelectorAll("*")].filter((one) => one.getAttributeNames().some((name) => name.startsWith("on") || name === "srcdoc"));
const links = [...document.querySelectorAll("[href], [src], [action], [formaction]")].filter((one) => {
  const target = new URL(one.href?.baseVal ?? one.getAttribute("href") ?? one.getAttribute("src") ?? one.getAttribute("action"), location.href);
  return target.protocol !== location.protocol && target.href !== "data:," || (target.host && target.host !== location.host);
});
return [...strange, ...scripts, ...styles, ...handlers, ...links].map((one) => one.outerHTML.slice(0, 200));
"""
EVERYTHING_OPEN = """
for (const one of document.querySelectorAll("details")) one.open = true;
for (const one of document.querySelectorAll("a, button, input, span, td")) one.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
"""
EVERY_CHOICE = """
const done = arguments[0], selects = [...document.querySelectorAll("select")];
(async () => {
  for (const select of selects) for (const option of [...select.options].filter((one) => !one.disabled)) {
    select.value = option.value;
    select.dispatchEvent(new Event("change", {bubbles: true}));
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 5)));
  }
  for (const select of selects) { select.selectedIndex = 0; select.dispatchEvent(new Event("change", {bubbles: true})); }
  done(true);
})();
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, an attempt and a goal for every injection, with it in their names too."""
    runs = tmp_path_factory.mktemp("hostile") / "runs"
    for number in NUMBERS:
        name = file_name(number)
        write_hostile_run(runs / name, number)
        attempt = runs / "attempts" / name
        attempt.mkdir(parents=True)
        (attempt / "trajectory.json").write_text(json.dumps(hostile_trajectory(number)))
        (attempt / "patch.diff").write_text(f"--- a\n+++ b\n+{INJECTIONS[number]}\n", errors="replace")
        _write_goal(runs / "goals" / name, INJECTIONS[number])
        _write_evaluation(runs / "evals" / name, INJECTIONS[number])
    return runs


def _write_goal(goal: Path, text: str) -> None:
    goal.mkdir(parents=True)
    told = dict.fromkeys(("instruction", "success", "model", "reason", "assurance", "branch"), text)
    tampering = [dict.fromkeys(("rule", "file", "evidence"), text)]
    attempts = [{"n": 1, "criterion": {"passed": text, "exit_code": text}, "tokens": text, "tampering": tampering}]
    (goal / "goal.json").write_text(json.dumps(told))
    (goal / "result.json").write_text(json.dumps(told | {"reached": False, "attempts": attempts}))


def _write_evaluation(evaluation: Path, text: str) -> None:
    evaluation.mkdir(parents=True)
    attempt = {"task": text, "outcome": "failed", "reason": text, "passed": False, "tokens": 3, "flags": [text]}
    lines = [{"suite": text, "model": text}, attempt]
    (evaluation / "attempts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = {"model": text, "k": 1, "pass_at_k": 0.25, "success": {"rate": 0.25, "low": 0.2, "high": 0.3}}
    (evaluation / "report.json").write_text(json.dumps(report))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A desk with a draft and a changed note for every injection."""
    home = tmp_path_factory.mktemp("hostile-home")
    vault = Vault.init(home / "vault")
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
def test_an_injection_is_text_on_every_page_about_its_run(
    chromium: Chromium, studio: str, runs: Path, number: int
) -> None:
    name, text = file_name(number), INJECTIONS[number]
    rollout = f"{name}.000"
    for page, words in (
        ("run", {}),
        ("rollouts", {}),
        ("tape", {"rollout": rollout}),
        ("group", {"group": name}),
        *((page, {}) for page in ("tasks", "integrity", "costs", "behaviour", "evaluation")),
    ):
        check(chromium, studio, f"{studio}{page}?{urlencode({'run': name} | words)}")
    for kind, pages in {"attempts": ("tape", "result"), "goals": ("result",), "evals": ("evaluation",)}.items():
        for page in pages:
            check(chromium, studio, f"{studio}{page}?{urlencode({'run': f'{kind}/{name}'})}")
    wild = urlencode({"run": name, "rollout": rollout, "message": text}, errors="replace")
    for page in ("tape", "desk", "run", "group", "static/x", "x"):
        check(chromium, studio, f"{studio}{page}?{wild}#step={wild}")
        check(chromium, studio, f"{studio}{page}?{urlencode({'run': text, 'rollout': text}, errors='replace')}")


def test_the_texts_are_there_as_they_were_written(chromium: Chromium, studio: str) -> None:
    for number in (0, 7, 42, len(INJECTIONS) - 4):
        chromium.go(f"{studio}tape?{urlencode({'run': f'attempts/{file_name(number)}'})}")
        chromium.wait_for_text(INJECTIONS[number].strip(), "article.step .message")


@pytest.mark.parametrize("page", ["", "desk", "ALL"])
def test_all_injections_beside_each_other_are_texts(chromium: Chromium, studio: str, page: str) -> None:
    runs = urlencode([("run", file_name(number)) for number in range(0, len(INJECTIONS), 5)])
    check(chromium, studio, f"{studio}run?{runs}" if page == "ALL" else studio + page)


@pytest.mark.parametrize("number", NUMBERS)
def test_an_injection_is_text_in_an_exported_file(
    chromium: Chromium, runs: Path, tmp_path: Path, number: int
) -> None:
    name = file_name(number)
    out = write_export(runs / name, tmp_path / "out.html").path
    check(chromium, "file://", out.as_uri())
    check(chromium, "file://", f"{out.as_uri()}#{urlencode({'rollout': f'{name}.000', 'step': '2'})}")
