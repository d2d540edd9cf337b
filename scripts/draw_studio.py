"""Take the pictures of docs/studio.md and of the README, docs/studio/*.png, with the Chromium of this machine.

    gametape demo
    gametape eval worlds:demo --model runs/demo/rlvr_ttf -n 4 -k 4 --limit 12 --trajectories --out runs/evals/held-out
    gametape train runs/demo/rlvr_ttf/config.toml --set arm=rlvr_ttf_gated --set flops=400000000 --out runs/gated
    python scripts/draw_studio.py [--runs runs] [NAME...]

A goal, a thread, a draft and a changed note are made here, with scripted models. Pictures have at most 256 colours.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from draw_screens import QUICKSTART, run_goal, run_thread
from small_png import small_png

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.studio.web.chromium import Chromium, require_chromium  # noqa: E402
from tests.studio.web.site import open_site, served  # noqa: E402

from gametape.desk.desk import open_desk  # noqa: E402
from gametape.desk.vault.vault import NoteWriter, Vault  # noqa: E402

PICTURES = ROOT / "docs" / "studio"
TTF, RLVR, EVAL, GATED = "demo/rlvr_ttf", "demo/rlvr", "evals/held-out", "gated"
PHONE = (390, 780)
CHOOSE = """
const colour = document.querySelector("select");
colour.value = arguments[0];
colour.dispatchEvent(new Event("change"));
"""


@dataclass(frozen=True)
class View:
    """A page to be photographed. `choose` is a colour of tokens."""

    name: str
    page: str
    height: int = 820
    dark: bool = False
    phone: bool = False
    choose: str = ""


def views(goal: str, thread: str, rollout: str, step: int, siblings: str, forks: str) -> list[View]:
    tape = f"tape?run={TTF}&rollout={rollout}"
    return [
        View("runs", "", 560),
        View("curves", f"run?run={TTF}", 960),
        View("curves-dark", f"run?run={TTF}&run={RLVR}", 960, dark=True),
        View("rollouts", f"rollouts?run={EVAL}", 620),
        View("tape", tape, 1180),
        View("target", f"{tape}#step={step}", 720),
        View("tape-dark", f"{tape}#step={step}", 900, dark=True, choose="targeted"),
        View("tape-phone", f"{tape}#step={step}", phone=True),
        View("entropy", tape, 760, choose="entropy"),
        *([View("forks", forks, 900)] if forks else []),
        View("siblings", f"group?run={EVAL}&group={quote(siblings)}", 1240),
        View("tasks", f"tasks?run={EVAL}", 620),
        View("integrity", "integrity?run=demo/attempts/cheat", 620),
        View("costs", f"costs?run={EVAL}", 620),
        View("behaviour", f"behaviour?run={TTF}", 620, dark=True),
        View("evaluation", f"evaluation?run={EVAL}", 960),
        View("calibration", f"calibration?run=home:goals/{goal}", 360),
        View("result", f"result?run=home:goals/{goal}", 720),
        View("goal-dark", f"tape?run=home:goals/{goal}#step=4", 900, dark=True),
        View("thread-phone", f"tape?run=home:threads/{thread}", phone=True),
        View("desk", "desk", 760),
        View("desk-phone", "desk", phone=True, dark=True),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=ROOT / "runs")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    require_chromium()
    runs = options.runs.absolute()
    tapes = sorted((runs / TTF / "trajectories").glob("*.json"))
    if not tapes:
        print(f"{runs / TTF}: has no rollout; make one with: gametape demo", file=sys.stderr)
        return 2
    step = json.loads(tapes[0].read_text())["extra"]["gametape"]["targets"][0]["step"]
    siblings = mixed_siblings(runs / EVAL)
    PICTURES.mkdir(exist_ok=True)
    with made_home() as (home, goal, thread), served(open_site(runs, home)) as studio, Chromium.open() as browser:
        for view in views(goal, thread, tapes[0].stem, step, siblings, first_fork(runs / GATED)):
            if not options.names or view.name in options.names:
                path = PICTURES / f"{view.name}.png"
                path.write_bytes(small_png(photograph(browser, studio, view)))
                print(f"{path.relative_to(ROOT)} {path.stat().st_size:,}")
    return 0


def mixed_siblings(evaluation: Path) -> str:
    """A prompt whose rollouts ended differently, else any."""
    outcomes: dict[str, set[str]] = {}
    for path in sorted((evaluation / "trajectories").glob("*.json")):
        outcome = json.loads(path.read_text())["extra"].get("outcome", "")
        outcomes.setdefault(path.stem.rpartition("-")[0], set()).add(outcome)
    return max(outcomes, key=lambda name: len(outcomes[name]), default="")


def first_fork(run: Path) -> str:
    """The address of a target with two forks; empty where the run has none."""
    for path in sorted((run / "trajectories").glob("*.json")):
        for pair in json.loads(path.read_text())["extra"]["gametape"].get("forks", []):
            return f"tape?run={GATED}&rollout={path.stem}#step={pair['step']}"
    return ""


@contextmanager
def made_home() -> Iterator[tuple[Path, str, str]]:
    """A home with something to decide in it, and the names of its goal and its thread."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="studio-") as scratch:
        place = Path(scratch)
        os.chdir(place)
        shutil.copytree(QUICKSTART, place, dirs_exist_ok=True)
        goal, thread, home = run_goal(place), run_thread(place), place / "home"
        body = "The sum was one too large, and the dearest price was given as the cheapest.\nBoth tests pass now."
        with open_desk(home) as desk:
            desk.outbox.draft("shop", thread, "ada@example.org", "The shop is mended", body)
        vault = Vault.open(home / "vault") if (home / "vault").is_dir() else Vault.init(home / "vault")
        vault.write(
            "shop", "# The shop\n\nPrices are whole cents; `total` adds nothing.\n", NoteWriter(thread, 2, "two")
        )
        try:
            yield home, goal, thread
        finally:
            os.chdir(before)


def photograph(browser: Chromium, studio: str, view: View) -> bytes:
    browser.colours("dark" if view.dark else "light")
    browser.resize(*(PHONE if view.phone else (1280, view.height)))
    browser.go(studio + view.page)
    browser.wait("document.querySelectorAll('[aria-busy=true]').length === 0")
    if view.choose:
        browser.run(CHOOSE, view.choose)
    if "#step" in view.page:
        browser.wait("document.querySelector('article.step.current')")
    time.sleep(1)  # for the last frame
    return browser.picture()


if __name__ == "__main__":
    sys.exit(main())
