"""A home on a disk of its own that is full at one write after the other: a clear line each time, nothing is lost."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gametape.agent.recorded_steps import message_key
from gametape.desk.database import check_database
from gametape.desk.desk import open_desk
from gametape.desk.heartbeats import registry
from gametape.desk.threads.thread import thread_directory

_DISK = 24 << 20
_BLOCK = 4096
_STEPS = (*range(12), *range(12, 60, 4), *range(60, 400, 30), *range(400, 4_000, 400))
"""Free blocks, tried one after the other until the verb succeeds."""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root mounts a small disk")
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", place], check=False)
    if done.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield place / "home"
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def gametape(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "gametape.cli.main", *words, "--home", str(home), "--json"]
    return subprocess.run(command, cwd=home.parent.parent, capture_output=True, text=True, check=False)


def leave(place: Path, blocks: int) -> None:
    """Fill the disk but for so many blocks."""
    ballast = place / "ballast"
    ballast.unlink(missing_ok=True)
    free = shutil.disk_usage(place).free - blocks * _BLOCK
    with ballast.open("wb") as file:
        while free > 0:
            try:
                free -= file.write(b"x" * min(free, 1 << 20))
                file.flush()
            except OSError:
                return


def until_it_succeeds(home: Path, words: Callable[[], tuple[str, ...]]) -> int:
    """Run a verb with ever more room. Returns how often the disk was full."""
    for times, blocks in enumerate(_STEPS):
        leave(home.parent, blocks)
        done = gametape(home, *words())
        assert "Traceback" not in done.stderr, (blocks, done.stderr[-3000:])
        if done.returncode == 0:
            (home.parent / "ballast").unlink()
            return times
        said = (blocks, words(), done.stderr[-2000:])
        assert done.returncode == 3, said
        assert done.stderr.splitlines()[-1].startswith("gametape: "), said
        assert json.loads(done.stdout.splitlines()[-1])["exit_code"] == 3, said
    raise AssertionError(f"{words()} never succeeds")


@pytest.mark.slow
def test_every_verb_goes_on_when_there_is_room(home: Path, tmp_path: Path) -> None:
    calls = [
        [{"name": "remember", "arguments": {"name": "agent/a", "text": "one"}}],
        [{"name": "draft", "arguments": {"to": "ann", "subject": "s", "text": "t"}}],
        [{"name": "shell", "arguments": {"command": "echo x > made"}}],
        [],
    ]
    lines = [json.dumps({"text": f"turn {number}", "tool_calls": call}) for number, call in enumerate(calls)]
    (tmp_path / "turns.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "hello.jsonl").write_text('{"text": "Hello."}\n' * 3)
    (tmp_path / "beat.md").write_text("---\nmodel: scripted:hello.jsonl\ncadence: {every: 1h}\n---\nIs all well?\n")
    home.mkdir()
    met = until_it_succeeds(home, lambda: ("thread", "new", "--model", "scripted:turns.jsonl"))
    threads = sorted(path.parent.name for path in home.glob("threads/*/thread.json"))
    assert len(threads) == 1, "what was not finished is no thread"
    name = threads[0]
    met += until_it_succeeds(home, lambda: ("thread", "say", name, "Do it.", "--key", "one"))
    steps = thread_directory(home, name).load_trajectory().steps
    assert len([step for step in steps if message_key(step)]) == 1
    command = ["git", "-C", home / "vault", "log", "--format=%s"]
    log = subprocess.run(command, capture_output=True, text=True, check=True)
    assert log.stdout.splitlines().count("agent/a: remembered") == 1
    met += until_it_succeeds(home, lambda: ("heartbeat", "add", "beat.md"))
    met += until_it_succeeds(home, lambda: ("heartbeat", "run", "beat"))
    with open_desk(home) as desk:
        (draft,) = desk.outbox.list()
        assert [tick.outcome for tick in registry.tick_log(desk, "beat")].count("asked") >= 1
    met += until_it_succeeds(home, lambda: ("outbox", "approve", draft.id))
    assert [path.suffix for path in (home / "outbox").iterdir() if not path.name.startswith(".")] == [".json"]
    met += until_it_succeeds(home, lambda: ("vault", "accept"))
    met += until_it_succeeds(home, lambda: ("thread", "archive", name))
    assert met > 10, "the disk was full now and then"
    check_database(f"sqlite:///{home / 'desk' / 'desk.sqlite'}")
