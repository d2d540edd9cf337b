"""`gametape demo`: its parts, and (slow) the whole of it in its shortest form."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from gametape.core.config import TinyConfig
from gametape.core.errors import BadInput
from gametape.demo.arms import ARMS, ArmFailed, train_arms
from gametape.demo.state import DemoState
from gametape.demo.view import plot, show_attempts, show_mined
from gametape.train.config_file import read_config
from gametape.train.policy import create_tiny_policy
from gametape.train.run_directory import RunDirectory

from .command import GAMETAPE, run


def test_six_programs_meet_the_wall_and_it_holds() -> None:
    done = run("demo", "--sandbox", "--json")
    assert (done.code, done.answer["held"], len(done.answer["acts"])) == (0, True, 6)


def test_curves_are_drawn_from_left_to_right() -> None:
    drawn = plot({"up": [(0, 0.0), (100, 1.0)], "flat": [(0, 0.5), (50, 0.5)]}, "title", width=21, height=5)
    title, *rows = drawn.plain.splitlines()
    assert title == "title"
    assert [row[7:] for row in rows[:5]] == [
        "                  ooo",
        "             ooooo   ",
        "***********oo        ",
        "   ooooo             ",
        "ooo                  ",
    ]
    assert rows[-1].split() == ["o", "up", "*", "flat"]


def test_a_plot_of_nothing_is_empty_and_of_one_point_has_one() -> None:
    assert "o" not in plot({}, "").plain
    assert plot({"one": [(0, 1.0)]}, "", width=5, height=3).plain.splitlines()[1].endswith("|o    ")


def test_what_a_task_or_a_model_wrote_is_shown_and_not_obeyed() -> None:
    hostile = "[red]a[/red]\x1b]0;title\x07 b"
    counts = {"held_out_passed": 0, "held_out_expected": 1, "passed": 0, "expected": 2}
    attempt = {
        "model": "scripted:cheat",
        "passed": False,
        "reward": -1.0,
        "tests": counts,
        "checks": [{"name": "tests", "score": 0.0, "detail": hostile}],
        "integrity": [{"severity": "proven", "rule": "tests.removed", "evidence": hostile}],
    }
    console = Console(file=io.StringIO(), width=120)
    show_attempts(console, [attempt])
    show_mined(console, {"valid": 1, "candidates": 1, "project": hostile, "seconds": 1, "names": [hostile]})
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert told.count("[red]a[/red]") == 4
    assert not {"\x1b", "\x07"} & set(told)


def test_a_demo_is_taken_up_as_it_was_begun(tmp_path: Path) -> None:
    DemoState.new(tmp_path / "demo", tmp_path, seed=7, quick=True).keep(mined={"names": ["a"]})
    again = DemoState.resume(tmp_path / "demo", tmp_path)
    assert (again.seed, again.data["quick"], again.data["mined"]) == (7, True, {"names": ["a"]})
    with pytest.raises(BadInput, match="--resume"):
        DemoState.new(tmp_path / "demo", tmp_path, seed=7, quick=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "rlvr").mkdir()
    with pytest.raises(BadInput, match="a new directory"):
        DemoState.new(tmp_path / "other", tmp_path, seed=7, quick=True)
    with pytest.raises(BadInput, match="cannot be written"):
        DemoState.new(tmp_path / "demo" / "demo.json" / "below", tmp_path, seed=7, quick=True)
    with pytest.raises(BadInput, match="no demo here"):
        DemoState.resume(tmp_path, tmp_path)
    for told in ("[]", "{}", again_with(again, seed="x"), again_with(again, seconds=None), again_with(again, mined=5)):
        (tmp_path / "demo" / "demo.json").write_text(told)
        with pytest.raises(BadInput, match=r"demo.json: .*not what a demo writes there"):
            DemoState.resume(tmp_path / "demo", tmp_path)


def again_with(stage: DemoState, **other: object) -> str:
    return json.dumps(stage.data | other)


@pytest.mark.parametrize("quick", [True, False])
def test_both_arms_have_the_same_weights_tasks_and_budget(tmp_path: Path, quick: bool) -> None:
    stage = DemoState.new(tmp_path / "demo", tmp_path, 5, quick)
    rlvr, ttf = (read_config(stage.config(arm), stage.changes) for arm in ARMS)
    assert (rlvr.arm, ttf.arm) == ARMS
    for name in ("seed", "model", "tasks", "tiny", "warm", "eval", "flops", "episodes"):
        assert getattr(rlvr, name) == getattr(ttf, name)
    assert (rlvr.seed, rlvr.model) == (5, "tiny")
    assert rlvr.flops


@pytest.mark.slow
def test_a_run_that_cannot_begin_is_said_in_its_own_words(tmp_path: Path) -> None:
    stage = DemoState.new(tmp_path / "demo", tmp_path, 0, quick=True)
    with pytest.raises(ArmFailed, match="warm/start: no such directory") as failed:
        train_arms(stage)
    assert failed.value.exit_code == 2


def _is_free(run: RunDirectory) -> bool:
    try:
        with run.lock():
            return run.metrics.exists()
    except BadInput:
        return False


_ARMS_OF = """
import sys
from pathlib import Path
from gametape.demo.arms import train_arms
from gametape.demo.state import DemoState
train_arms(DemoState.resume(Path(sys.argv[1]), Path(sys.argv[1])))
"""


@pytest.mark.slow
def test_no_run_outlives_a_demo_that_is_killed(tmp_path: Path) -> None:
    stage = DemoState.new(tmp_path / "demo", tmp_path, 3, quick=True)
    create_tiny_policy(stage.start, TinyConfig(layers=1, width=32, heads=2, window=256), seed=3)
    runs = [RunDirectory(stage.out / arm) for arm in ARMS]
    with subprocess.Popen([sys.executable, "-c", _ARMS_OF, str(stage.out)]) as begun:
        until = time.monotonic() + 120
        while not all(run.metrics.exists() for run in runs) and time.monotonic() < until:
            time.sleep(0.05)
        begun.kill()
    until = time.monotonic() + 5
    while not all(map(_is_free, runs)) and time.monotonic() < until:
        time.sleep(0.05)
    assert all(map(_is_free, runs))


@pytest.mark.slow
def test_the_whole_demo_interrupted_and_taken_up(tmp_path: Path) -> None:
    out, words = tmp_path / "demo", ("--home", str(tmp_path / "home"), "--json")
    command = [sys.executable, GAMETAPE, "demo", "--quick", "--seed", "3", "--out", str(out), *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as begun:
        until = time.monotonic() + 300
        while not (out / "rlvr" / "config.toml").exists() and time.monotonic() < until:
            time.sleep(0.05)
        os.kill(begun.pid, signal.SIGINT)
        said = begun.communicate(timeout=120)[1]
    assert begun.returncode == 130
    assert f"go on with: gametape demo --resume {out}" in said.splitlines()[-1]
    done = run("demo", "--resume", out, *words)
    assert done.code == 0
    answer = done.answer
    assert (answer["seed"], answer["told_apart"], set(answer["arms"])) == (3, True, {"rlvr", "rlvr_ttf"})
    assert [one["success_before"] for one in answer["arms"].values()] == [answer["arms"]["rlvr"]["success_before"]] * 2
    assert Path(answer["report"]).read_text().startswith("<!doctype html>")
    assert json.loads((out / "demo.json").read_text())["seed"] == 3
