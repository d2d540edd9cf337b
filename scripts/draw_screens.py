"""Make the pictures of docs/reading-runs.md: a goal, a thread, a training run and the file of another maker.

    python scripts/draw_screens.py [--training RUN...]

The goal and the thread are run here, with scripted models. The training runs are those given (two arms of a demo, for
instance); without them their picture stays as it is. The pages are photographed with the Chromium of this machine.
"""

import argparse
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from draw_report import photograph
from rich.console import Console

from gametape.studio.run_place import find_place
from gametape.studio.trajectory_view import read_trajectory
from gametape.terminal.step_lines import Fold
from gametape.terminal.trajectory_view import show_trajectory

ROOT = Path(__file__).parents[1]
SCREENS = ROOT / "docs" / "screens"
FOREIGN = ROOT / "examples" / "trajectories" / "terminus.json"
QUICKSTART = ROOT / "examples" / "quickstart"


def call(text: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"text": text, "tool_calls": [{"name": tool, "arguments": arguments}]}


THREAD_TURNS = [
    call("I read it first.", "shell", command="cat shop.py"),
    {"text": "`total` adds one to the sum, and `cheapest` gives the dearest price. Shall I mend both?"},
    call("I mend the sum.", "edit", path="shop.py", old="return sum(prices) + 1", new="return sum(prices)"),
    {"text": "`total` is mended. `cheapest` is as you left it."},
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--training", type=Path, nargs="+", default=[])
    training = [run.absolute() for run in parser.parse_args().training]
    SCREENS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="screens-") as scratch:
        place = Path(scratch)
        os.chdir(place)
        shutil.copytree(QUICKSTART, place, dirs_exist_ok=True)
        shutil.copy(FOREIGN, place)
        runs = {"goal": [run_goal(place)], "thread": [run_thread(place)], "foreign": [FOREIGN.name]}
        runs |= {"training": [str(run) for run in training]} if training else {}
        for name, given in runs.items():
            draw_terminal(name, given[-1])
            gametape(place, "report", *given, "--out", f"{name}.html")
            photograph(place / f"{name}.html", SCREENS / f"{name}-report.png", (1000, 1300))
        photograph(place / "goal.html", SCREENS / "goal-report-phone-dark.png", (500, 1300), dark=True)
    return 0


def run_goal(place: Path) -> str:
    instruction = "Mend the shop: the tests say what is wrong."
    words = ("--workspace", "shop", "--success", "pytest -q", "--instruction", instruction)
    return str(gametape(place, "goal", "run", *words, "--model", "scripted:turns.jsonl")["goal_id"])


def run_thread(place: Path) -> str:
    model = write_script(place / "thread.jsonl", THREAD_TURNS)
    words = ("--title", "the shop", "--model", model, "--workspace", "shop")
    name = str(gametape(place, "thread", "new", *words)["thread"])
    gametape(place, "thread", "say", name, "What is wrong with the shop?")
    gametape(place, "thread", "say", name, "Mend the sum only.")
    return name


def draw_terminal(name: str, run: str) -> None:
    """What `trajectory show` prints, as a picture; of a training run, one of its rollouts."""
    found = find_place(Path(run), Path("home"))
    path = found.trajectory or found.trajectories()[0]
    console = Console(record=True, width=104, file=io.StringIO(), force_terminal=True, highlight=False, markup=False)
    show_trajectory(console, read_trajectory(path), Fold(), wrap=True)
    shown = run if found.kind in ("goal", "thread") else path.name
    picture = console.export_svg(title=f"gametape trajectory show {shown}")
    without_remote_fonts = re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL)
    (SCREENS / f"{name}-show.svg").write_text(without_remote_fonts)


def write_script(path: Path, turns: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    return f"scripted:{path.name}"


def gametape(place: Path, *words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "gametape.cli.main", *words, "--home", "home", "--json"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


if __name__ == "__main__":
    sys.exit(main())
