"""How long the studio takes in a real browser with many runs, long tapes and long logs, and how much memory it has.

    python benchmarks/studio.py [--runs N] [--rollouts N] [--steps N] [--turns N] [--updates N] [--save]

Makes a directory with N training runs of which one has kept many rollouts, a tape of 500 turns with 100,000 sampled
tokens, a tape of 128 MB, and a log with a million figures. Starts `gametape studio` on it and opens its pages in
Chromium. Prints when what a page is for was painted, how long the slowest of many interactions took to its next frame,
and the largest memory of the server so far. `--save` keeps that in benchmarks/results/studio.txt.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.studio.web.chromium import Chromium, require_chromium, script  # noqa: E402

from gametape.studio.web.curves import UPDATE_KEYS  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "studio.txt"
WATCH = script("watch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rollouts", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--updates", type=int, default=50_000)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    require_chromium()
    lines: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        huge = make_runs(root, options.runs, options.rollouts, options.steps)
        points = make_log(root / "run0002" / "metrics.jsonl", options.updates)
        write_tape(root / "run0001" / "trajectories" / "long.000.json", options.turns, tokens=200)
        say(f"{options.runs} runs, one with {options.rollouts:,} rollouts; a log of {points:,} figures;")
        say(f"a tape of {options.turns} turns and {200 * options.turns:,} sampled tokens; ")
        say(f"a tape of {options.steps:,} steps, {huge.stat().st_size / 1e6:.0f} MB")
        measure(root, options.steps, say)
    if options.save:
        RESULTS.write_text("\n".join(lines) + "\n")


def make_runs(root: Path, runs: int, rollouts: int, steps: int) -> Path:
    for number in range(runs):
        trajectories = root / f"run{number:04}" / "trajectories"
        trajectories.mkdir(parents=True)
        (trajectories.parent / "config.toml").write_text('arm = "rlvr"\n')
        lines = [json.dumps({"kind": "update", "step": step, "reward": 0.5}) for step in range(1, 101)]
        (trajectories.parent / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    kept = root / "run0000" / "trajectories"
    for number in range(rollouts):
        document = trajectory([step(1)])
        (kept / f"d{number // 8:08}.{number % 8:03}.json").write_text(json.dumps(document))
    return write_tape(root / "run0001" / "trajectories" / "huge.000.json", steps)


def write_tape(path: Path, steps: int, tokens: int = 100) -> Path:
    head, tail = json.dumps(trajectory([])).split("[]")
    with path.open("w") as file:
        file.write(f"{head}[{json.dumps(step(1, tokens))}")
        file.writelines(f", {json.dumps(step(number, tokens))}" for number in range(2, steps + 1))
        file.write(f"]{tail}")
    return path


def make_log(path: Path, updates: int) -> int:
    """A line for each update with twenty figures; how many there are in all."""
    times = ("decode", "tools", "prepare", "verify", "coach", "learn", "idle")
    with path.open("w") as log:
        for number in range(1, updates + 1):
            figures = dict.fromkeys(UPDATE_KEYS[:13], number * 7919 % 1009 / 1009)
            line = {"kind": "update", "step": number, **figures, "time": dict.fromkeys(times, 0.1)}
            log.write(json.dumps(line) + "\n")
    return 20 * updates


def trajectory(steps: list[dict[str, object]]) -> dict[str, object]:
    agent = {"name": "gametape", "version": "0"}
    return {"schema_version": "ATIF-v1.7", "trajectory_id": "t", "agent": agent, "steps": steps, "extra": {"task": "t"}}


def step(number: int, tokens: int = 100) -> dict[str, object]:
    sampled = {"completion_token_ids": [*range(tokens)], "logprobs": [-(number % 37) / 9.123456789] * tokens}
    return {
        "step_id": number,
        "source": "agent",
        "message": 'a "text" with \\ and\n' * 20,
        "tool_calls": [{"tool_call_id": "c", "function_name": "write", "arguments": {"path": "a", "text": "[{" * 20}}],
        "observation": {"results": [{"source_call_id": "c", "content": "a line\n" * 200}]},
        "metrics": {"prompt_token_ids": [*range(1500)], **sampled},
        "extra": {"gametape": {"loss_mask": [1] * tokens, "policy_versions": [3] * tokens}},
    }


def measure(root: Path, steps: int, say: Callable[[str], None]) -> None:
    command = [sys.executable, "-m", "gametape.cli.main", "studio", "--runs", str(root), "--home", str(root / "none")]
    with subprocess.Popen([*command, "--port", "0", "--json"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        address = json.loads(server.stdout.readline())["address"]
        try:
            with Chromium.open() as browser:
                browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
                browser.go(f"{address}desk")  # what a first page of all costs the browser itself
                say(f"{'':44} {'painted, s':>10} {'again, s':>9} {'server, MB':>10}")
                for label, page in pages(steps):
                    first, again = (paint(browser, address + page) for _ in range(2))
                    say(f"{label:44} {first:10.2f} {again:9.2f} {memory(server.pid):10.0f}")
                for label, page, act in INTERACTIONS:
                    paint(browser, address + page)
                    worst = interact(browser, act)
                    say(f"{label:44} {worst[0]:7.0f} ms for the slowest of {worst[2]}, {worst[1]}")
        finally:
            server.terminate()


def pages(steps: int) -> list[tuple[str, str]]:
    middle = steps // 2
    return [
        ("the list of runs", ""),
        ("the curves of a run with all those figures", "run?run=run0002"),
        ("100 of the rollouts", "rollouts?run=run0000&first=5000"),
        ("the tape with 100,000 tokens", "tape?run=run0001&rollout=long.000"),
        ("its step 251", "tape?run=run0001&rollout=long.000#step=251"),
        ("the tape of 128 MB", "tape?run=run0001&rollout=huge.000"),
        (f"its step {middle:,}", f"tape?run=run0001&rollout=huge.000#step={middle}"),
    ]


def paint(browser: Chromium, address: str) -> float:
    """Seconds until what the page is for was on the screen."""
    browser.go(address)
    return float(browser.wait("window.painted")) / 1000


def walk(browser: Chromium) -> None:
    for key in "jjjjjkkknnn":
        browser.press(key)
        time.sleep(0.2)


def choose(browser: Chromium) -> None:
    for number in (0, 1):
        for key in ("\ue015", "\ue015", "\ue013"):
            browser.run("document.querySelectorAll('select')[arguments[0]].focus()", number)
            browser.press(key)
            time.sleep(0.3)


def jump(browser: Chromium) -> None:
    for place in (0.1, 0.9, 0.5, 0.3):
        browser.click_at("canvas.strip", place)
        time.sleep(0.5)


def hover(browser: Chromium) -> None:
    for place in range(1, 20):
        browser.click_at("figure.chart svg", place / 20)


INTERACTIONS = (
    ("j, k and n on the tape of 100,000 tokens", "tape?run=run0001&rollout=long.000", walk),
    ("clicks on its strip", "tape?run=run0001&rollout=long.000", jump),
    ("other colours and filters", "tape?run=run0001&rollout=long.000", choose),
    ("j, k and n on the tape of 128 MB", "tape?run=run0001&rollout=huge.000", walk),
    ("clicks on its strip", "tape?run=run0001&rollout=huge.000", jump),
    ("other colours and filters", "tape?run=run0001&rollout=huge.000", choose),
    ("the pointer over a curve", "run?run=run0002", hover),
)


def interact(browser: Chromium, act: Callable[[Chromium], None]) -> tuple[float, str, int]:
    """The longest time from an event to the next frame, which event it was, and how many took longer than a frame."""
    browser.run("window.slow.length = 0")
    act(browser)
    time.sleep(0.5)
    found = browser.run("return window.slow") or [[16, "less than a frame"]]
    return (*max(found), len(found))


def memory(pid: int) -> float:
    """The largest resident memory of a process so far, in MB."""
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


if __name__ == "__main__":
    main()
