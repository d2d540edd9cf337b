"""`gametape solve` as a user runs it: real processes, killed, interrupted and resumed."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gametape.agent.solve import SolveResult
from gametape.cli.solve import _show
from gametape.record.trajectory_file import load_trajectory

from ..patience import HANG, wait_until
from .command import gametape

TASK = Path(__file__).parents[2] / "examples/tasks/slugs"
TURNS = 24


def argv(out: Path, *more: str, model: str = "scripted:expert") -> list[str]:
    return [sys.executable, "-m", "gametape.cli.main", "solve", str(TASK), "--model", model, "--out", str(out), *more]


def solve(out: Path, *more: str, model: str = "scripted:expert") -> subprocess.CompletedProcess[str]:
    return gametape(*argv(out, *more, model=model)[3:])


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def script(path: Path, commands: list[str]) -> str:
    turns = [{"text": "", "tool_calls": [{"name": "shell", "arguments": {"command": command}}]} for command in commands]
    path.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    return f"scripted:{path}"


@pytest.fixture(autouse=True)
def home(task_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAMETAPE_HOME", str(task_home))


def test_the_expert_passes_and_everything_the_contract_names_is_there(tmp_path: Path) -> None:
    done = solve(tmp_path / "out", "--json", "--seed", "1", "--temperature", "0", "--max-turns", "9")
    output = answer(done)
    assert done.returncode == 0, done.stderr
    assert (output["outcome"], output["turns"], output["cost_usd"]) == ("passed", 4, 0.0)
    assert output["verdict"]["passed"] is True
    assert output["tokens"] > 0
    assert output["seconds"] > 0
    record = load_trajectory(Path(output["trajectory"]))
    assert (record.outcome, record.tokens_exact(), record.mask_ok()) == ("passed", True, True)
    assert "def slugify" in (Path(output["workspace"]) / "slugs.py").read_text()
    applied = tmp_path / "applied"
    subprocess.run(["cp", "-r", TASK / "environment/workspace", applied], check=True)
    subprocess.run(["git", "apply", output["patch"]], cwd=applied, check=True)
    assert (applied / "slugs.py").read_bytes() == (Path(output["workspace"]) / "slugs.py").read_bytes()


@pytest.mark.parametrize(("policy", "code"), [("clumsy", 0), ("cheat", 1)])
def test_the_clumsy_one_recovers_and_the_cheat_earns_nothing(tmp_path: Path, policy: str, code: int) -> None:
    done = solve(tmp_path / "out", "--json", model=f"scripted:{policy}")
    output = answer(done)
    assert done.returncode == code, done.stderr
    assert (output["verdict"]["reward"] > 0) == (code == 0)
    assert bool(output["verdict"]["integrity"]) == (code == 1)


def test_a_limit_leaves_a_verdict_and_can_be_raised_with_resume(tmp_path: Path) -> None:
    first = solve(tmp_path / "out", "--json", "--max-turns", "1")
    assert first.returncode == 1
    assert (answer(first)["outcome"], answer(first)["reason"]) == ("limit", "1 turns")
    again = solve(tmp_path / "out", "--json", "--resume")
    assert (answer(again)["outcome"], answer(again)["turns"]) == ("passed", 4)
    assert load_trajectory(tmp_path / "out/trajectory.json").tokens_exact() is True


def wait_for_turns(journal: Path, count: int, running: "subprocess.Popen[Any]") -> None:
    """Wait until so many turns are recorded, or the run has ended."""

    def is_there() -> bool:
        return journal.exists() and journal.read_bytes().count(b"\n") >= 3 + count

    wait_until(lambda: is_there() or running.poll() is not None, "a recorded turn")


def test_an_interrupt_leaves_a_valid_trajectory_and_an_intact_workspace(tmp_path: Path) -> None:
    out = tmp_path / "out"
    model = script(tmp_path / "s.jsonl", ["echo one >> log", "echo two >> log; sleep 600", "echo three >> log"])
    takes_interrupts = ["env", "--default-signal=INT"]  # where the tests themselves run with interrupts ignored
    running = subprocess.Popen(
        [*takes_interrupts, *argv(out, "--json", model=model)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_turns(out / "trajectory.jsonl", 1, running)
    running.send_signal(signal.SIGINT)
    stdout, _ = running.communicate(timeout=HANG)
    output = json.loads(stdout.splitlines()[-1])
    assert running.returncode == 130
    assert (output["outcome"], output["verdict"], output["turns"]) == ("cancelled", None, 1)
    assert (out / "workspace/log").read_text() == "one\n"
    assert load_trajectory(out / "trajectory.json").outcome == "cancelled"
    script(tmp_path / "s.jsonl", ["echo one >> log", "echo two >> log", "echo three >> log"])
    again = solve(out, "--json", "--resume", model=model)
    assert answer(again)["turns"] == 4
    assert (out / "workspace/log").read_text().split() == ["one", "two", "three"]


def kill_and_resume(tmp_path: Path, kills: int, seed: int) -> None:
    """Kill a rollout again and again, then let it finish: each turn's effect is there once, and nothing was lost."""
    rng = random.Random(seed)
    out = tmp_path / "out"
    model = script(tmp_path / "s.jsonl", [f"echo {number} >> log; sleep 0.05" for number in range(TURNS)])
    finished: list[str] = []
    for number in range(kills):
        running = subprocess.Popen(
            argv(out, *(["--resume"] if (out / "trajectory.jsonl").exists() else []), model=model),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if number % 3:
            wait_for_turns(out / "trajectory.jsonl", len(finished) + 1, running)
        time.sleep(rng.uniform(0, 0.4))
        running.kill()
        running.wait()
        if (out / "trajectory.json").exists():
            break  # it was done before it could be killed
        if not (out / "trajectory.jsonl").exists():
            continue
        steps = load_trajectory(out / "trajectory.jsonl").steps
        now = [step.model_dump_json() for step in steps]
        assert now[: len(finished)] == finished, "a finished turn is gone or has changed"
        finished = now
    else:
        done = solve(out, "--json", "--resume", model=model)
        assert answer(done)["turns"] == TURNS + 1, done.stderr
    assert (out / "workspace/log").read_text().split() == [str(number) for number in range(TURNS)]
    record = load_trajectory(out / "trajectory.json")
    assert [step.model_dump_json() for step in record.steps][: len(finished)] == finished
    assert record.tokens_exact() is True


def test_kill_9_loses_no_finished_turn(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, kills=5, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_kill_9_at_fifty_instants_loses_no_finished_turn(tmp_path: Path, seed: int) -> None:
    kill_and_resume(tmp_path, kills=5, seed=seed)


WRONG: list[tuple[list[str], str]] = [
    (["--model", "scripted:nobody"], "no such script"),
    (["--model", "gpt"], "no such model"),
    (["--model", "smollm2", "--home", "/nonexistent-home"], "fetch"),
    (["--max-turns", "0"], "max-turns"),
    (["--resume"], "no attempt to resume"),
    (["--tools", "shell,fly"], "no tool 'fly'"),
    (["--constraints", "/nonexistent.toml"], "No such file"),
]


@pytest.mark.parametrize(("more", "said"), WRONG)
def test_bad_input_is_one_clear_line(tmp_path: Path, more: list[str], said: str) -> None:
    done = solve(tmp_path / "out", *more)
    assert done.returncode == (3 if "fetch" in said else 2)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_attempt_is_never_overwritten_and_only_continued_as_it_was_begun(tmp_path: Path) -> None:
    assert solve(tmp_path / "out", "--max-turns", "1").returncode == 1
    for more, said in (
        (["--json"], "continue it with --resume"),
        (["--resume", "--model", "scripted:cheat"], "begun with"),
    ):
        done = solve(tmp_path / "out", *more)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert load_trajectory(tmp_path / "out/trajectory.json").outcome == "limit"


@pytest.mark.parametrize("line", ['{"text": 3}', "not json", '{"tool_calls": [{"name": "x", "arguments": []}]}', ""])
def test_a_bad_script_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(line + "\n")
    done = solve(tmp_path / "out", model=f"scripted:{path}")
    assert done.returncode == 2
    assert str(path) in done.stderr
    assert ("line 1" in done.stderr) == bool(line)


def test_a_reason_with_markup_in_it_is_text(capfd: pytest.CaptureFixture[str]) -> None:
    odd = Path("/tmp/[/x]")
    _show(SolveResult("error", "a server said [/b] and [red]", odd, odd, odd, None, 1, 2, 0.0, 3.0))
    assert "a server said [/b] and [red]" in capfd.readouterr().out


def test_a_finished_attempt_is_not_asked_again(tmp_path: Path) -> None:
    first, again = [solve(tmp_path / "out", "--json", *words, model="scripted:expert") for words in ([], ["--resume"])]
    keys = ("outcome", "turns", "tokens", "verdict", "trajectory")
    assert [answer(again)[key] for key in keys] == [answer(first)[key] for key in keys]
    assert again.returncode == 0
    assert answer(again)["warnings"] == ["finished before: nothing was asked of the model"]
