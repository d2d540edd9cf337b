"""`gametape report` and `gametape trajectory show` on every kind of run, as a person types them."""

import fcntl
import json
import os
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import GAMETAPE, run
from tests.desk.goals.shop import BY_EXIT_CODE, DONE, MENDED, lay, script, write
from tests.record.test_trajectory_stream import EXAMPLE, document, step
from tests.studio.runs import HOSTILE, make_run, make_trajectory, score, target
from tests.studio.test_report import Page


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a goal that was reached at the second attempt, and a thread."""
    place = tmp_path_factory.mktemp("home")
    workspace = lay(place / "workspace")
    model = script(place / "goal.jsonl", [DONE, write("shop.py", MENDED), DONE])
    words = ("--workspace", workspace, "--success", BY_EXIT_CODE, "--model", model, "--instruction", HOSTILE)
    ran = run("goal", "run", *words, "--home", place / "home", "--json")
    assert ran.code == 0, ran.err
    (place / "thread.jsonl").write_text(json.dumps({"text": f"It counts. {HOSTILE}"}) + "\n")
    words = ("--title", "counts", "--model", f"scripted:{place / 'thread.jsonl'}", "--home", place / "home")
    name = run("thread", "new", *words, "--json").answer["thread"]
    assert run("thread", "say", name, "What is it?", "--home", place / "home").code == 0
    return place / "home"


def report(*words: str | Path, cwd: Path) -> tuple[Page, str]:
    ran = run("report", *words, "--json", cwd=cwd)
    assert ran.code == 0, ran.err
    path = Path(ran.answer["written"])
    assert path.is_absolute()
    source = path.read_text()
    page = Page(path)
    assert not page.tags & {"script", "img", "link", "iframe", "object", "base", "form", "a"}
    assert not {name for name in page.attributes if name.startswith("on")} | (page.attributes & {"src", "href"})
    assert "Content-Security-Policy" in source
    assert "\x1b" not in source
    return page, source


def test_a_goal_is_shown_and_reported_by_its_id(home: Path, tmp_path: Path) -> None:
    (goal,) = [path.name for path in (home / "goals").iterdir()]
    shown = run("trajectory", "show", goal, "--home", home)
    assert shown.code == 0
    assert "outcome  passed  reached" in shown.out
    assert "[judged] attempt 1 did not reach the goal" in shown.out
    assert "\x1b" not in shown.out
    page, _ = report(goal, "--home", home, cwd=tmp_path)
    assert "reached" in page.text
    assert "attempt 1 did not reach the goal" in page.text
    assert "+    return sum(prices)" in page.text


def test_a_thread_is_shown_and_reported_by_its_directory(home: Path, tmp_path: Path) -> None:
    (directory,) = (home / "threads").iterdir()
    shown = run("trajectory", "show", directory)
    assert (shown.code, "outcome  running" in shown.out, "It counts." in shown.out) == (0, True, True)
    page, _ = report(directory, cwd=tmp_path)
    assert "The conversation" in page.text
    assert "What is it?" in page.text


def test_a_home_is_listed_and_reported(home: Path, tmp_path: Path) -> None:
    listed = run("trajectory", "show", home, "--json").answer
    assert (listed["kind"], len(listed["trajectories"])) == ("home", 2)
    page, _ = report(home, cwd=tmp_path)
    assert "2 in all" in page.text
    assert "The conversation" in page.text


def test_training_runs_are_compared_and_a_rollout_is_shown(tmp_path: Path) -> None:
    make_run(tmp_path / "a", "rlvr", [score(0, 0.2), score(640, 0.3)])
    root = make_run(tmp_path / "b", "rlvr", [score(0, 0.2), score(640, 0.9)], [target("kept", 2.5)])
    make_trajectory(root, "kept")
    page, _ = report("a", "b", "--out", "both.html", cwd=tmp_path)
    assert "RLVR (b) ended 60.0 points above RLVR (a)" in page.text
    listed = run("trajectory", "show", "b", cwd=tmp_path)
    assert "show one with: gametape trajectory show b/trajectories/kept.json" in listed.out
    shown = run("trajectory", "show", "b/trajectories/kept.json", "--turn", "1", cwd=tmp_path)
    assert "[hint] rule : mark before pack" in shown.out
    assert "turn 2" not in shown.out


@pytest.mark.usefixtures("tasks_prepared_once")
def test_an_evaluation_is_reported_with_what_failed(tmp_path: Path) -> None:
    tasks = Path(__file__).parents[2] / "examples" / "tasks"
    words = ("--model", "scripted:cheat", "--limit", "1", "--out", tmp_path / "e", "--trajectories")
    assert run("eval", tasks, *words, "--home", tmp_path / "home").code == 0
    page, _ = report("e", cwd=tmp_path)
    assert "Evaluation of scripted:cheat on tasks" in page.text
    assert "By task, the hardest first" in page.text
    assert "Turn by turn" in page.text


def test_another_makers_file_is_reported(tmp_path: Path) -> None:
    page, _ = report(EXAMPLE, cwd=tmp_path)
    for part in ("terminus-2 2.0.0", "reasoning, 24 words", "4,304 cached", "image/png images/calendar.png"):
        assert part in page.text


def test_a_page_stays_small_and_says_what_it_left_out(tmp_path: Path) -> None:
    long = step(1, message="x" * 50_000, observation={"results": [{"content": "y\n" * 50_000}]})
    made = document([long | {"step_id": number} for number in range(1, 1001)])
    (tmp_path / "long.json").write_text(json.dumps(made))
    page, source = report("long.json", cwd=tmp_path)
    assert len(source) < 4_000_000
    assert "600 steps are left out here" in page.text
    assert "more characters" in page.text
    assert "It has reached its size" in page.text


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("extra", "verdict", "reward"), 10**400),
        (("extra", "verdict", "tests", "passed"), 10**400),
        (("extra", "verdict", "checks"), {"a": 1}),
        (("final_metrics", "total_cost_usd"), 10**400),
        (("steps", 0, "metrics", "cost_usd"), 10**400),
        (("steps", 0, "metrics", "prompt_tokens"), 10**400),
    ],
)
def test_values_that_nobody_can_mean_do_no_harm(tmp_path: Path, where: tuple[str | int, ...], value: object) -> None:
    whole = {**document([step(1, metrics={})]), "final_metrics": {}}
    whole["extra"] = {"verdict": {"passed": True, "tests": {"passed": 1, "expected": 1}}}
    inner: Any = whole
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    file = tmp_path / "odd.json"
    file.write_text(json.dumps(whole))
    assert run("trajectory", "show", file).code == 0
    assert run("report", file, "--out", tmp_path / "page.html").code == 0


def test_a_pipe_in_the_place_of_a_record_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "trajectory.json")
    for words in (("trajectory", "show"), ("report",)):
        ran = run(*words, tmp_path)
        assert (ran.code, len(ran.err.splitlines())) == (2, 1), ran.err


def test_what_is_damaged_in_a_directory_is_left_out_and_said(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "good.json").write_text(EXAMPLE.read_text())
    (tmp_path / "runs" / "bad.json").write_text(EXAMPLE.read_text()[:900])
    (tmp_path / "runs" / "other.json").write_text('{"a": 1}')
    listed = run("trajectory", "show", "runs", cwd=tmp_path)
    assert (listed.code, "good.json" in listed.out, listed.err.count("left out: runs/bad.json")) == (0, True, 1)
    page, _ = report("runs", cwd=tmp_path)
    assert "terminus-2 2.0.0" in page.text
    assert "damaged" in page.text


def test_colours_only_where_they_are_wanted(tmp_path: Path) -> None:
    assert "\x1b" not in run("trajectory", "show", EXAMPLE).out
    assert "\x1b[" in run("trajectory", "show", EXAMPLE, "--color", "always").out
    assert "\x1b" not in run("trajectory", "show", EXAMPLE, "--color", "never").out
    narrow = run("trajectory", "show", EXAMPLE, "--width", "40").out
    assert max(map(len, narrow.splitlines())) <= 40


def test_json_has_the_steps_that_were_asked_for() -> None:
    answer = run("trajectory", "show", EXAMPLE, "--turns", "2-3", "--json").answer
    assert (answer["kind"], answer["turns"], [one["turn"] for one in answer["steps"]]) == ("trajectory", 4, [2, 3])
    assert answer["steps"][0]["reasoning"].startswith("Months of 30 days")
    assert answer["steps"][0]["calls"][1]["arguments"] == {"keystrokes": "git diff\n", "duration": 0.5}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("trajectory", "show", "none"), "none: no such file or directory"),
        (("trajectory", "show", "goal-20260101-abcdef"), "no such goal; gametape goal list shows them"),
        (("trajectory", "show", "thread-20260101"), "no such thread"),
        (("trajectory", "show", "empty"), "empty: has no trajectory"),
        (("trajectory", "show", "notes.txt"), "expected a JSON object that holds a trajectory"),
        (("trajectory", "show", EXAMPLE, "--turn", "9"), "--turn 9: there are 4 turns"),
        (("trajectory", "show", EXAMPLE, "--turn", "3-1"), "expected a number from 1"),
        (("trajectory", "show", EXAMPLE, "--turn", "0"), "expected a number from 1"),
        (("trajectory", "show", EXAMPLE, "--color", "pink"), "expected auto, always or never"),
        (("trajectory", "show", EXAMPLE, "--subagent", "x"), "there is no subagent 'x' in it"),
        (("report", "none"), "none: no such file or directory"),
        (("report", "empty"), "a directory without a run or a trajectory"),
        (("report", "notes.txt"), "expected a JSON object that holds a trajectory"),
        (("report", EXAMPLE, "--out", "notes.txt"), "there is a file that is no report"),
        (("report", EXAMPLE, "--out", "empty"), "not a file"),
        (("report", EXAMPLE, "--out", "no/such/place.html"), "cannot be written"),
        (("report", "broken"), "config.toml: not the configuration of a run"),
    ],
)
def test_what_cannot_be_shown_is_said_in_one_line(tmp_path: Path, words: tuple[str | Path, ...], says: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.toml").write_text("a = [")
    (tmp_path / "notes.txt").write_text("notes\n")
    ran = run(*words, "--home", tmp_path / "home", cwd=tmp_path)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert says in ran.err


def test_the_tokens_of_each_attempt_are_its_own(home: Path, tmp_path: Path) -> None:
    (goal,) = (home / "goals").iterdir()
    tokens = [attempt["tokens"] for attempt in json.loads((goal / "result.json").read_text())["attempts"]]
    source = Path(run("report", goal, "--json", cwd=tmp_path).answer["written"]).read_text()
    titles = source.partition("<h2>Attempts</h2>")[2].partition("</tr>")[0]
    assert '<th class="number">tokens<th' in titles
    assert all(f'<td class="number">{each:,}' in source for each in tokens)


def test_a_terminal_breaks_lines_between_words(tmp_path: Path) -> None:
    said = "The quick brown fox jumps over the lazy dog. " * 12
    made = document([step(1, source="user", message="Jump."), step(2, message=said.strip())])
    (tmp_path / "trajectory.json").write_text(json.dumps(made))
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    words = [sys.executable, GAMETAPE, "trajectory", "show", "trajectory.json", "--full", "--color", "never"]
    plain = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment = {**plain, "TERM": "xterm"}
    subprocess.run(words, stdin=subprocess.DEVNULL, stdout=theirs, cwd=tmp_path, env=environment, check=True)
    os.close(theirs)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", os.read(ours, 65536).decode()).splitlines()
    os.close(ours)
    told = [line for line in lines if set(line.split()) & set(said.split())]
    assert len(told) > 8
    assert all(len(line) <= 60 and set(line.split()) <= set(said.split()) for line in told)
    assert all(line.startswith("  ") for line in told)
