"""A journal outlives `kill -9` at any instant and a full disk: real processes, real files."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gametape.core.trajectory import Trajectory
from gametape.record.journal import Journal
from gametape.record.trajectory_file import load_trajectory, parse_file

from . import writer


def start(kind: str, path: Path, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, writer.__file__, kind, str(path), str(number)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def kill_somewhere(path: Path, turns: int, after: int, chance: random.Random) -> list[str]:
    """Kill the writer a random moment after its turn number `after`; return all it acknowledged."""
    with start("kill", path, turns) as process:
        assert process.stdout is not None
        heard = [process.stdout.readline().strip() for _ in range(after)]
        instant = time.perf_counter() + chance.uniform(0, 0.003)
        while time.perf_counter() < instant:
            pass
        process.kill()
        return heard + process.stdout.read().split()


def assert_whole(trajectory: Trajectory) -> None:
    assert [step.message for step in trajectory.steps] == [
        writer.message(number + 1) for number in range(len(trajectory.steps))
    ]


def kill_while_writing(path: Path, chance: random.Random) -> None:
    heard = kill_somewhere(path, 10**6, chance.randrange(1, 40), chance)
    killed = parse_file(path)
    assert killed.trajectory is not None
    assert_whole(killed.trajectory)
    turns = len(killed.trajectory.steps)
    assert int(heard[-1]) <= turns <= int(heard[-1]) + 1
    with Journal.open(path) as journal:
        assert path.stat().st_size == killed.complete_bytes
        journal.append(writer.turn(turns + 1))
        finished = journal.close()
    assert_whole(load_trajectory(finished))
    assert len(load_trajectory(finished).steps) == turns + 1


def kill_while_closing(path: Path, chance: random.Random) -> None:
    turns = 20
    heard = kill_somewhere(path, turns, turns, chance)
    finished = path.with_suffix(".json")
    assert finished.exists() or "closed" not in heard
    for found in [form for form in (path, finished) if form.exists()] or [finished]:
        assert len(load_trajectory(found).steps) == turns
        assert_whole(load_trajectory(found))


@pytest.mark.parametrize("seed", range(10))
def test_every_acknowledged_turn_outlives_a_kill(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    kill_while_writing(tmp_path / "writing.jsonl", chance)
    kill_while_closing(tmp_path / "closing.jsonl", chance)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_every_acknowledged_turn_outlives_a_hundred_kills(seed: int, tmp_path: Path) -> None:
    test_every_acknowledged_turn_outlives_a_kill(seed, tmp_path)


@pytest.mark.parametrize("room", [3_000, 20_000, 50_001])
def test_a_full_disk_loses_no_finished_turn_and_work_goes_on_after_it(room: int, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with start("full", path, room) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        turns, size, said = process.stdout.readline().split(" ", 2)
        assert "free some space and try again" in said
        assert "free some space and try again" in process.stdout.readline()
        assert path.stat().st_size == int(size) < room
        assert len(load_trajectory(path).steps) == int(turns) > 0
        assert_whole(load_trajectory(path))
        process.stdin.write("\n")
        process.stdin.close()
        assert process.wait() == 0
    assert [found.name for found in tmp_path.iterdir()] == ["t.json"]
    assert len(load_trajectory(tmp_path / "t.json").steps) == int(turns) + 1
    assert_whole(load_trajectory(tmp_path / "t.json"))
