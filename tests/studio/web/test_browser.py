"""Every page in a real browser, over runs that the commands themselves made: what is drawn, what follows a run, and
where keys and addresses lead. On no page does a script fail, the policy stop anything, or a request leave."""

import fcntl
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from gametape.record.journal_format import header_line, step_line
from gametape.studio.web import live
from gametape.studio.web.export import write_export

from .chromium import ENTER, TAB, Chromium, script
from .conftest import RealRuns
from .site import open_site, served, step_of, update_line

pytestmark = pytest.mark.slow
TTF = "demo/rlvr_ttf"
ROWS = "document.querySelectorAll('article.step').length"
CURRENT = "article.step.current"


@pytest.fixture(scope="module")
def studio(real_runs: RealRuns) -> Iterator[str]:
    with served(open_site(real_runs.runs, real_runs.home)) as address:
        yield address


@pytest.fixture
def look(chromium: Chromium, studio: str) -> Iterator[Chromium]:
    """The browser, which has seen nothing that it must not once the test is over."""
    chromium.requested(), chromium.complaints()
    yield chromium
    chromium.check_quiet(studio)


def kept_rollout(runs: Path) -> Path:
    return sorted((runs / "demo" / "rlvr_ttf" / "trajectories").glob("*.json"))[0]


def tape_of(studio: str, runs: Path, step: int = 0) -> str:
    at = f"#step={step}" if step else ""
    return f"{studio}tape?run={quote(TTF, safe='')}&rollout={kept_rollout(runs).stem}{at}"


PAGES = [
    ("", "rlvr_ttf"),
    (f"run?run={TTF}", "Held-out success"),
    (f"run?run={TTF}&run=demo/rlvr", "Settings that differ"),
    (f"rollouts?run={TTF}", "siblings"),
    (f"tasks?run={TTF}", "hardest"),
    (f"tasks?run={TTF}", "Share that passed lately"),
    (f"compare?run={TTF}&rollout=KEPT&run=demo/attempts/expert&rollout=trajectory", "different tasks"),
    ("result?run=demo/attempts/expert", "what was deleted"),
    (f"integrity?run={TTF}", "attempted against the grader"),
    (f"costs?run={TTF}", "tokens for a success"),
    (f"behaviour?run={TTF}", "Monitors"),
    (f"evaluation?run={TTF}", "Held-out evaluations"),
    ("run?run=demo/rlvr", "Mean reward"),
    ("result?run=demo/attempts/expert", "Verdict by layer"),
    ("tape?run=demo/attempts/cheat", "integrity"),
    ("integrity?run=demo/attempts/cheat", "tests.removed"),
    ("result?run=home:goals/GOAL", "The patch"),
    ("tape?run=home:goals/GOAL", "The sum is one too large."),
    ("behaviour?run=home:goals/GOAL", "steps were watched"),
    ("costs?run=home:goals/GOAL", "In all"),
    ("tape?run=home:threads/THREAD", "What is wrong with the shop?"),
    ("desk", "Goals and threads"),
]


@pytest.mark.parametrize(("page", "shown"), PAGES)
def test_every_page_shows_what_it_is_for(
    look: Chromium, studio: str, real_runs: RealRuns, page: str, shown: str
) -> None:
    page = page.replace("GOAL", real_runs.goal).replace("THREAD", real_runs.thread)
    look.go(studio + page.replace("KEPT", kept_rollout(real_runs.runs).stem))
    look.wait_for_text(shown)
    look.wait("document.querySelectorAll('[aria-busy=true]').length === 0")
    assert look.run("return document.querySelectorAll('.failure').length") == 0
    assert look.run(UNNAMED) == []


UNNAMED = script("unnamed")


def test_the_list_leads_to_runs_and_compares_those_that_are_marked(look: Chromium, studio: str) -> None:
    look.go(studio)
    for name in (TTF, "demo/rlvr"):
        look.click(f"input[value='{name}']")
    look.click("form[action='/run'] button")
    look.wait_for_text("2 runs beside each other")
    look.wait("document.querySelector('.legend')?.innerText.match(/demo.rlvr/g)?.length === 2")
    assert look.run("return document.querySelectorAll('figure.chart').length") > 5


def test_charts_name_the_values_under_the_pointer(look: Chromium, studio: str) -> None:
    look.go(f"{studio}run?run={TTF}")
    look.wait("document.querySelector('figure.chart svg')")
    look.run(
        "const svg = document.querySelector('figure.chart svg'), box = svg.getBoundingClientRect();"
        "svg.dispatchEvent(new PointerEvent('pointermove', {clientX: box.right - 12, clientY: box.top + 20}));"
    )
    assert " at " in look.text("figure.chart .legend")


def test_keys_walk_through_a_tape_and_to_what_went_wrong(look: Chromium, studio: str, real_runs: RealRuns) -> None:
    look.go(tape_of(studio, real_runs.runs))
    look.wait(ROWS)
    look.press("j")
    look.wait("location.hash === '#step=2'")
    look.press("k")
    look.wait("location.hash === '#step=1'")
    look.press("n")
    told = json.loads(kept_rollout(real_runs.runs).read_text())
    wrong = {hint["step"] for hint in told["extra"]["gametape"]["targets"]} | {
        step["step_id"]
        for step in told["steps"]
        for result in (step.get("observation") or {}).get("results", [])
        if (result.get("extra") or {}).get("failed")
    }
    look.wait("location.hash !== '#step=1'")
    assert look.run("return location.hash") == f"#step={min(at for at in wrong if at > 1)}"
    look.wait(f"document.querySelector('{CURRENT}') === document.activeElement")


def test_a_link_to_a_step_opens_there(look: Chromium, studio: str, real_runs: RealRuns) -> None:
    steps = len(json.loads(kept_rollout(real_runs.runs).read_text())["steps"])
    look.go(tape_of(studio, real_runs.runs, steps))
    look.wait(f"document.querySelector('{CURRENT}')?.ariaLabel.startsWith('step {steps},')")
    look.run("location.hash = '#step=2'")
    look.wait(f"document.querySelector('{CURRENT}')?.ariaLabel.startsWith('step 2,')")


def test_colours_and_filters_change_what_is_seen(look: Chromium, studio: str, real_runs: RealRuns) -> None:
    look.go(tape_of(studio, real_runs.runs))
    look.wait(ROWS)
    everything = look.run(f"return {ROWS}")
    channels = look.run(
        "return [...document.querySelectorAll('select')[0].options].filter((o) => !o.disabled).map((o) => o.value)"
    )
    strips = set()
    for channel in channels:
        choose(look, 0, channel)
        strips.add(look.run("return document.querySelector('canvas.strip').toDataURL()"))
        look.wait(ROWS)
        coloured = "[...document.querySelectorAll('.tokens span')].some((one) => one.style.backgroundColor)"
        look.wait(f"{coloured} === {str(channel != 'none').lower()}")
    assert len(strips) > 3
    choose(look, 1, "agent")
    look.wait(f"{ROWS} > 0 && {ROWS} < {everything}")
    assert look.run("return document.querySelectorAll('.step.other').length") == 0


def choose(look: Chromium, number: int, value: str) -> None:
    look.run(
        "const select = document.querySelectorAll('select')[arguments[0]]; select.value = arguments[1];"
        "select.dispatchEvent(new Event('change', {bubbles: true}));",
        number,
        value,
    )


def test_a_target_shows_the_hint_its_author_and_each_token(look: Chromium, studio: str, real_runs: RealRuns) -> None:
    (hint, *_) = json.loads(kept_rollout(real_runs.runs).read_text())["extra"]["gametape"]["targets"]
    look.go(tape_of(studio, real_runs.runs, hint["step"]))
    look.wait_for_text(hint["text"], ".target .hint")
    assert hint["author"] in look.text(".target")
    rows = "document.querySelector('.target').querySelectorAll('tbody tr').length"
    assert look.run(f"return {rows}") == hint["span"][1] - hint["span"][0]
    assert "teacher - student" in look.run("return document.querySelector('.tokens .targeted').title")


def test_the_keyboard_alone_reaches_everything(look: Chromium, studio: str) -> None:
    look.go(studio)
    look.press(TAB, ENTER)
    assert look.run("return location.hash") == "#main"
    seen = set()
    for _ in range(60):
        look.press(TAB)
        seen.add(look.run("return document.activeElement.getAttribute('href') || document.activeElement.name || ''"))
    assert f"/run?run={quote(TTF, safe='')}" in seen
    assert "run" in seen


@pytest.mark.parametrize(
    "page", ["", f"run?run={TTF}", "TAPE", "desk", f"rollouts?run={TTF}", "result?run=demo/attempts/expert"]
)
def test_a_phone_shows_pages_without_scrolling_sideways(
    look: Chromium, studio: str, real_runs: RealRuns, page: str
) -> None:
    try:
        look.resize(390, 844, 2)
        look.go(tape_of(studio, real_runs.runs) if page == "TAPE" else studio + page)
        look.wait("document.querySelectorAll('[aria-busy=true]').length === 0")
        assert look.run("return document.documentElement.scrollWidth") <= 390
    finally:
        look.resize(1280, 900)


CONTRAST = script("contrast")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(
    look: Chromium, studio: str, real_runs: RealRuns, scheme: str
) -> None:
    look.colours(scheme)
    for page in (studio, f"{studio}run?run={TTF}", tape_of(studio, real_runs.runs), f"{studio}desk"):
        look.go(page)
        look.wait("document.querySelectorAll('[aria-busy=true]').length === 0")
        assert look.run(CONTRAST) == []
    look.colours("light")


def test_an_exported_run_opens_from_disk_with_nothing_but_itself(
    chromium: Chromium, real_runs: RealRuns, tmp_path: Path
) -> None:
    chromium.requested(), chromium.complaints()
    out = write_export(real_runs.runs / "demo" / "rlvr_ttf", tmp_path / "run.html").path
    chromium.go(out.as_uri())
    chromium.wait("document.querySelectorAll('figure.chart').length > 5")
    chromium.go(f"{out.as_uri()}#rollout={kept_rollout(real_runs.runs).stem}&step=2")
    chromium.wait(f"document.querySelector('{CURRENT}')?.ariaLabel.startsWith('step 2,')")
    chromium.press("j")
    chromium.wait("location.hash.endsWith('step=3')")
    chromium.check_quiet("file://")


def test_a_page_follows_a_run_while_it_is_written(
    chromium: Chromium, real_runs: RealRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SECONDS_BETWEEN_LOOKS", 0.02)
    run = tmp_path / "runs" / "live"
    shutil.copytree(real_runs.runs / "demo" / "rlvr_ttf", run)
    chromium.requested(), chromium.complaints()
    with served(open_site(tmp_path / "runs")) as studio, (run / ".lock").open("w") as lock:
        chromium.go(studio)
        chromium.wait_for_text("ended", "[data-cell=state]")
        fcntl.flock(lock, fcntl.LOCK_EX)
        chromium.wait_for_text("running", "[data-cell=state]")
        chromium.go(f"{studio}run?run=live")
        chromium.wait("document.querySelectorAll('figure.chart').length")
        with (run / "metrics.jsonl").open("a") as log:
            log.write(update_line(4321, reward=0.125))
        chromium.wait_for_text("reward 0.125", "main")
        chromium.check_quiet(studio)
        shutil.rmtree(run)
        chromium.wait_for_text("was deleted meanwhile", "main")


def test_a_tape_grows_where_it_is_read(chromium: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "attempt" / "trajectory.jsonl"
    path.parent.mkdir()
    path.write_bytes(header_line({"schema_version": "ATIF-v1.7"}) + step_line(step_of(1), 0))
    chromium.requested(), chromium.complaints()
    with served(open_site(tmp_path)) as studio:
        chromium.go(f"{studio}tape?run=attempt#step=1")
        chromium.wait_for_text("said 1")
        with path.open("ab") as file:
            file.write(step_line(step_of(2), 1))
        chromium.wait_for_text("said 2")
        assert chromium.run("return location.hash") == "#step=1"
        chromium.check_quiet(studio)
