"""A desk with work of every kind, a server that is killed again and again, and what must be true in the end."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from gametape.agent.recorded_steps import message_key
from gametape.desk.database import notices, ticks
from gametape.desk.desk import open_desk
from gametape.desk.goals.goal import goal_directory as goal_place
from gametape.desk.goals.goal_request import GoalRequest, create_goal
from gametape.desk.heartbeats import registry
from gametape.desk.jobs import Desk, Job
from gametape.desk.threads.lifecycle import create_thread
from gametape.desk.threads.thread import Thread, new_thread_id, thread_directory
from gametape.desk.workflow_engine import open_job_client
from tests.patience import HANG

_BROKEN = "def double(number):\n    return number\n"
_MENDED = "def double(number):\n    return 2 * number\n"
_TEST = "from calc import double\n\n\ndef test_double():\n    assert double(4) == 8\n"


@dataclass
class Bench:
    home: Path
    url: str | None
    threads: dict[str, str]
    """Each with the key of what was said there."""
    goal: str
    beats: tuple[str, ...] = ("eager", "idle")

    @property
    def told(self) -> Path:
        return self.home / "told.jsonl"


def set_up(root: Path, url: str | None = None, turns: int = 3) -> Bench:
    """Two threads that are spoken to, a goal, a heartbeat that asks and one whose guard says no."""
    home = root / "home"
    bench = Bench(home, url, {}, "")
    (home / "desk").mkdir(parents=True, exist_ok=True)
    tell = ["/bin/sh", "-c", f"cat >> {bench.told}; echo >> {bench.told}"]
    (home / "desk" / "desk.toml").write_text(f"[notify]\ncommand = {json.dumps(tell)}\n")
    workspace = root / "workspace"
    workspace.mkdir()
    (workspace / "calc.py").write_text(_BROKEN)
    (workspace / "test_calc.py").write_text(_TEST)
    beating = _script(root / "beating.jsonl", [[] for _ in range(500)])
    with open_desk(home, url) as desk:
        for name, guard in (("eager", "true"), ("idle", "false")):
            matter = f"model: {beating}\nworkspace: {workspace}\ncadence: {{every: 1s}}\nguard: '{guard}'"
            registry.add(desk, name, f"---\n{matter}\n---\nAnything new?\n")
        with open_job_client(desk) as jobs:
            for number in range(2):
                thread, key = asyncio.run(_thread(root, home, number, turns)), f"say-{number}"
                bench.threads[thread] = key
                jobs.submit(Job("turn", key, {"thread": thread, "text": "Do it.", "key": key}, thread))
            mend = {"name": "write", "arguments": {"path": "calc.py", "content": _MENDED}}
            model = _script(
                root / "mending.jsonl", [[{"name": "shell", "arguments": {"command": "sleep 1"}}], [mend], []]
            )
            wish = GoalRequest(workspace=workspace, success="pytest -q", model=model, python=Path(sys.executable))
            bench.goal = create_goal(home, wish).root.name
            jobs.submit(Job("goal", bench.goal, {"goal_id": bench.goal}))
    return bench


def kill_often(bench: Bench, kills: int, seed: int, seconds: float = HANG) -> None:
    """Serve, be killed, serve again; then serve until everything is done, and be ended in order."""
    chance = random.Random(seed)
    for _ in range(kills):
        server = _serve(bench)
        time.sleep(chance.uniform(0.5, 6.0))
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
    server = _serve(bench)
    try:
        deadline = time.monotonic() + seconds
        with open_desk(bench.home, bench.url) as desk:
            while not _is_done(desk, bench):
                assert server.poll() is None, _last_words(bench)
                assert time.monotonic() < deadline, _last_words(bench)
                time.sleep(0.2)
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(HANG) == 0, _last_words(bench)


def check(bench: Bench, turns: int = 3) -> None:
    """Everything went on, and everything that left a workspace is there exactly once."""
    with open_desk(bench.home, bench.url) as desk:
        for thread, key in bench.threads.items():
            steps = thread_directory(bench.home, thread).load_trajectory().steps
            assert [message_key(step) for step in steps if message_key(step)] == [key]
            assert Counter(draft.subject for draft in desk.outbox.list() if draft.origin == thread) == {
                f"draft {number}": 1 for number in range(turns)
            }
            trailers = _git(
                bench.home / "vault", "log", "--format=%(trailers:key=Gametape-Thread,valueonly,separator=)"
            )
            assert trailers.split().count(thread) == turns, "a note for every turn, none twice, none lost"
        result = goal_place(bench.home, bench.goal).read_result()
        assert result is not None
        assert result["reached"], result
        with desk.database.connect() as connection:
            ended = connection.execute(ticks.select().order_by(ticks.c.scheduled)).mappings().all()
            told = {row["key"] for row in connection.execute(notices.select()).mappings()}
        for name in bench.beats:
            instants = [row["scheduled"] for row in ended if row["heartbeat"] == name]
            assert len(instants) == len(set(instants)), "no doubled tick"
            assert all(later - earlier > 0.99 for earlier, later in pairwise(instants))
        assert {row["outcome"] for row in ended if row["heartbeat"] == "idle"} == {"guard"}
        assert sum(row["tokens"] for row in ended if row["heartbeat"] == "idle") == 0
        asked = {row["key"] for row in ended if row["outcome"] == "asked"}
        own = thread_directory(bench.home, registry.load_state(desk, "eager").thread).load_trajectory().steps
        words = Counter(message_key(step) for step in own if message_key(step))
        assert set(words.values()) == {1}, "nothing was said twice"
        assert asked <= set(words)
        assert len(set(words) - asked) <= 1, "but for the one that the end cut off"
        assert {f"{key}/tell" for key in asked} <= told
        received = {json.loads(line)["key"] for line in bench.told.read_text().splitlines() if line.strip()}
        assert {f"{key}/tell" for key in asked} <= received
        assert {row["outcome"] for row in ended} <= {"asked", "guard"}


async def _thread(root: Path, home: Path, number: int, turns: int) -> str:
    scripted = []
    for turn in range(turns):
        note = {"name": "remember", "arguments": {"name": f"agent/thread-{number}-{turn}", "text": f"learnt {turn}"}}
        draft = {"name": "draft", "arguments": {"to": "ann", "subject": f"draft {turn}", "text": "text"}}
        scripted += [[note], [draft], [{"name": "shell", "arguments": {"command": "sleep 0.5"}}]]
    model = _script(root / f"talking-{number}.jsonl", [*scripted, []])
    thread = new_thread_id()
    made = Thread(
        thread_id=thread, model=model, created=time.time(), vault=str(home / "vault"), store=thread, title=f"{number}"
    )
    await create_thread(home, made)
    return thread


def _script(path: Path, turns: list[list[dict[str, object]]]) -> str:
    lines = (json.dumps({"text": f"turn {n} of {path.stem}", "tool_calls": calls}) for n, calls in enumerate(turns))
    path.write_text("\n".join(lines) + "\n")
    return f"scripted:{path}"


def _serve(bench: Bench) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "gametape.cli.main", "desk", "serve", "--home", str(bench.home)]
    with (bench.home / "serve.log").open("ab") as log:
        return subprocess.Popen(
            [*command, *(["--database", bench.url] if bench.url else [])], stderr=log, cwd=bench.home
        )


def _is_done(desk: Desk, bench: Bench) -> bool:
    with open_job_client(desk) as jobs:
        over = all(jobs.state(key) in ("done", "failed") for key in [*bench.threads.values(), bench.goal])
    return over and all(len(registry.tick_log(desk, name)) >= 3 for name in bench.beats)


def _last_words(bench: Bench) -> str:
    logs = [bench.home / "serve.log", bench.home / "desk" / "desk.log"]
    return "\n".join(log.read_text()[-3000:] for log in logs if log.exists())


def _git(repository: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", repository, *words], check=True, capture_output=True, text=True).stdout
