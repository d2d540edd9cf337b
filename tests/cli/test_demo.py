"""`gametape demo` as a command: the sandbox part, and (slow) the whole of it in its shortest form."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gametape.record.installation import command_line
from tests.patience import HANG, wait_until

from .command import GAMETAPE, run


def test_five_hostile_programs_are_stopped_and_the_harmless_one_works() -> None:
    done = run("demo", "--sandbox", "--json")
    assert (done.code, done.answer["held"], len(done.answer["acts"])) == (0, True, 6)


@pytest.mark.slow
def test_the_whole_demo_interrupted_and_taken_up(tmp_path: Path) -> None:
    out, words = tmp_path / "demo", ("--home", str(tmp_path / "home"), "--json")
    command = [sys.executable, GAMETAPE, "demo", "--quick", "--seed", "3", "--out", str(out), *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as begun:
        wait_until((out / "rlvr" / "config.toml").exists, "the first arm")
        os.kill(begun.pid, signal.SIGINT)
        said = begun.communicate(timeout=HANG)[1]
    assert begun.returncode == 130
    assert f"go on with: {command_line('demo', '--resume', out)}" in said.splitlines()[-1]
    done = run("demo", "--resume", out, *words)
    assert done.code == 0
    answer = done.answer
    assert (answer["seed"], answer["told_apart"], set(answer["arms"])) == (3, True, {"rlvr", "rlvr_ttf"})
    assert [one["success_before"] for one in answer["arms"].values()] == [answer["arms"]["rlvr"]["success_before"]] * 2
    for page in ("report", "studio"):
        assert Path(answer[page]).read_text().lstrip().startswith("<!doctype html>")
    assert json.loads((out / "demo.json").read_text())["seed"] == 3
