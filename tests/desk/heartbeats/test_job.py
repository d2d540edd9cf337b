"""Heartbeats over a real database and real sandboxes: what they notice, when they ask, and what a tick comes to."""

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from gametape.core.errors import BadInput
from gametape.desk.database import notices
from gametape.desk.desk import open_desk
from gametape.desk.heartbeats import registry
from gametape.desk.heartbeats.config import parse_config
from gametape.desk.heartbeats.event_sources import read_fingerprints, run_in_sandbox
from gametape.desk.heartbeats.job import run_tick_job
from gametape.desk.heartbeats.scheduler import HeartbeatScheduler
from gametape.desk.jobs import Desk, Job
from gametape.desk.threads.thread import thread_directory
from gametape.desk.workflow_engine import open_job_client
from tests.desk.steps import Kept, Killed, MemoryRecorder


@pytest.fixture
def desk(home: Path) -> Iterator[Desk]:
    with open_desk(home) as opened:
        yield opened


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "workspace" / "src").mkdir(parents=True)
    (tmp_path / "workspace" / "src" / "a.py").write_text("1\n")
    return tmp_path / "workspace"


class Taken:
    """Takes what is handed in, and does nothing with it."""

    def __init__(self) -> None:
        self.errands: dict[str, Job] = {}
        self.ended: dict[str, str] = {}

    def submit(self, job: Job) -> None:
        self.errands.setdefault(job.key, job)

    def state(self, key: str) -> str | None:
        return self.ended.get(key, "queued") if key in self.errands else None


def add(desk: Desk, name: str, *lines: str, answers: tuple[str, ...] = ("seen",) * 9) -> None:
    script = desk.home / f"{name}.jsonl"
    script.write_text("".join(json.dumps({"text": answer}) + "\n" for answer in answers))
    registry.add(desk, name, "\n".join(["---", f"model: scripted:{script}", *lines, "---", "Look at it."]))


def tick(desk: Desk, name: str, stored: Kept | None = None, **dying: object) -> dict[str, object]:
    job = registry.tick_job(
        desk, name, registry.read_config(desk, name), f"heartbeat/{name}/2026-11-15T09:00:00.000Z", "by hand"
    )
    return asyncio.run(run_tick_job(desk, MemoryRecorder(job.key, stored, **dying), job.payload))  # type: ignore[arg-type]


def rounds(schedule: HeartbeatScheduler, *moments: float) -> None:
    async def attend() -> None:
        for moment in moments:
            await schedule.round(moment, moment)

    asyncio.run(attend())


def test_a_guard_that_says_no_spends_nothing_and_makes_no_thread(desk: Desk, workspace: Path) -> None:
    add(desk, "beat", "cadence: {every: 1m}", f"workspace: {workspace}", "guard: echo quiet; test -f news")
    ended = tick(desk, "beat")
    assert (ended["outcome"], ended["detail"], ended["tokens"]) == ("guard", "exit code 1 quiet", 0)
    assert not (desk.home / "threads").exists()
    assert not desk.notifications.since(0)


def test_a_tick_asks_over_the_files_as_they_are_and_tells_once_however_often_it_dies(
    desk: Desk, workspace: Path
) -> None:
    add(desk, "beat", "cadence: {every: 1m}", f"workspace: {workspace}", answers=("a.py holds 1.", "nothing."))
    stored, ended = Kept(), None
    for life in range(20):
        try:
            ended = tick(desk, "beat", stored, die_at=1, after_keeping=life % 2 == 1)
        except Killed:
            continue
        break
    assert ended is not None
    assert (ended["outcome"], ended["detail"]) == ("asked", "a.py holds 1.")
    assert [output.text for output in desk.notifications.since(0)] == ["a.py holds 1."]
    logged = registry.tick_log(desk, "beat")
    assert [entry.tokens for entry in logged] == [ended["tokens"]]
    steps = thread_directory(desk.home, registry.load_state(desk, "beat").thread).load_trajectory().steps
    assert [step.source for step in steps] == ["system", "user", "agent"]


def test_the_budget_of_the_day_ends_it(desk: Desk) -> None:
    add(desk, "beat", "cadence: {every: 1m}", "budget: {tokens: 10}")
    midnight = time.time() - 1
    registry.record_tick(
        desk, registry.TickRecord("k", "beat", midnight, time.time(), "asked", "", 10, 0.0), lambda old: old
    )
    assert tick(desk, "beat")["outcome"] == "budget"


@pytest.mark.parametrize(("left", "outcome"), [(149, "budget"), (151, "asked")])
def test_nothing_is_asked_when_less_is_left_than_the_last_answer_took(desk: Desk, left: int, outcome: str) -> None:
    now, tokens = time.time(), 300
    add(desk, "beat", "cadence: {every: 1m}", f"budget: {{tokens: {tokens + 150 + left}}}")
    add(desk, "rich", "cadence: {every: 1m}", f"budget: {{usd: {(tokens + 150 + left) / 1000}}}")
    took = ((-86_400, 9000), (-0.2, tokens), (-0.1, 150), (0, 0))
    for number, (ago, took_tokens) in enumerate(took):
        for name in ("beat", "rich"):
            spent = (took_tokens, 0.0) if name == "beat" else (0, took_tokens / 1000)
            ended = registry.TickRecord(f"{name}-{number}", name, now, now + ago, "asked", "", *spent)
            registry.record_tick(desk, ended, lambda old: old)
    assert [tick(desk, name)["outcome"] for name in ("beat", "rich")] == [outcome, outcome]


def test_the_first_answer_of_a_day_is_asked_for_whatever_that_of_yesterday_took(desk: Desk) -> None:
    add(desk, "beat", "cadence: {every: 1m}", "budget: {tokens: 8000}")
    yesterday = time.time() - 86_400
    registry.record_tick(
        desk, registry.TickRecord("k", "beat", yesterday, yesterday, "asked", "", 9000, 0.0), lambda old: old
    )
    assert tick(desk, "beat")["outcome"] == "asked"


def test_what_is_due_is_handed_in_once_also_after_a_kill_in_between(desk: Desk) -> None:
    add(desk, "beat", "cadence: {every: 10s}")
    begun, taken = registry.load_state(desk, "beat").state.anchor, Taken()
    rounds(HeartbeatScheduler(desk, taken, print), begun, begun + 9, begun + 10, begun + 11)  # type: ignore[arg-type]
    assert list(taken.errands) == [registry.tick_key("beat", begun + 10)]
    lost = Taken()
    rounds(HeartbeatScheduler(desk, lost, print), begun + 12, begun + 25)  # type: ignore[arg-type]
    assert list(lost.errands) == list(taken.errands), "what was taken and not handed in is handed in by the next"
    lost.ended[registry.tick_key("beat", begun + 10)] = "failed"
    rounds(HeartbeatScheduler(desk, lost, print), begun + 45, begun + 46)  # type: ignore[arg-type]
    assert list(lost.errands)[1:] == [registry.tick_key("beat", begun + 40)], "of what was missed only the last"
    assert [entry.outcome for entry in registry.tick_log(desk, "beat")] == ["failed"]


def test_an_event_waits_for_the_active_hours_and_for_nothing_else(desk: Desk, workspace: Path) -> None:
    lines = (f"workspace: {workspace}", "event: {files: ['src/*.py'], every: 1s}")
    add(desk, "now", *lines)
    local = time.gmtime(time.time() - 3600)
    add(desk, "later", *lines, f"active_hours: {{from: '{local.tm_hour:02}:00', to: '{local.tm_hour:02}:01'}}")
    taken, said = Taken(), list[str]()
    schedule, begun = HeartbeatScheduler(desk, taken, said.append), time.time()  # type: ignore[arg-type]
    rounds(schedule, begun + 1, begun + 3)
    assert not taken.errands, "the first look is what others are compared with"
    (workspace / "README").write_text("not looked at")
    rounds(schedule, begun + 5)
    assert not taken.errands
    (workspace / "src" / "a.py").write_text("2 and more\n")
    rounds(schedule, begun + 7, begun + 8)
    assert [job.payload["heartbeat"] for job in taken.errands.values()] == ["now"]
    assert registry.load_state(desk, "later").event == "changed: files"
    rounds(schedule, begun + 25 * 3600)
    assert not said


def test_a_slow_source_holds_up_no_other_heartbeat(desk: Desk, workspace: Path) -> None:
    add(desk, "slow", f"workspace: {workspace}", "event: {command: sleep 20, every: 1s}")
    add(desk, "quick", "cadence: {every: 10s}")
    begun, taken = registry.load_state(desk, "quick").state.anchor, Taken()
    schedule = HeartbeatScheduler(desk, taken, print)  # type: ignore[arg-type]

    async def attend() -> bool:
        await schedule.round(begun + 10, 10)
        still_reading = bool(schedule._reads)
        for read in schedule._reads.values():
            read.cancel()
        return still_reading

    assert asyncio.run(attend()), "the round did not wait for the command"
    assert list(taken.errands) == [registry.tick_key("quick", begun + 10)]


def test_a_clock_that_is_set_forward_and_back_changes_no_interval(desk: Desk) -> None:
    add(desk, "beat", "cadence: {every: 10s}")
    begun, taken = registry.load_state(desk, "beat").state.anchor, Taken()
    schedule, day = HeartbeatScheduler(desk, taken, print), 86_400.5  # type: ignore[arg-type]

    async def attend() -> None:
        for second in range(60):
            await schedule.round(begun + second + (day if 15 <= second < 35 else 0), second)
            registry.update_state(desk, "beat", lambda old: replace(old, pending=""))

    asyncio.run(attend())
    moments = [begun + 10, begun + day + 20, begun + day + 30, begun + 40, begun + 50]
    assert list(taken.errands) == [registry.tick_key("beat", moment) for moment in moments]


def test_after_a_restart_a_tick_far_ahead_is_brought_back(desk: Desk) -> None:
    add(desk, "beat", "cadence: {every: 10s}")
    begun, taken = time.time(), Taken()
    registry.update_state(
        desk, "beat", lambda old: replace(old, state=replace(old.state, last=begun + 86_400), pending="")
    )
    rounds(HeartbeatScheduler(desk, taken, print), begun, begun + 9, begun + 10.5)  # type: ignore[arg-type]
    assert list(taken.errands) == [registry.tick_key("beat", begun + 10)]


def test_heartbeats_that_wake_each_other_are_refused_and_stopped(desk: Desk) -> None:
    add(desk, "first", "event: {heartbeat: second}")
    for name in ("second", "alone"):
        waker = {"second": "first", "alone": "alone"}[name]
        config = parse_config(f"---\nmodel: m\nevent: {{heartbeat: {waker}}}\n---\nx", "x")
        with pytest.raises(BadInput, match="would wake itself"):
            registry.check_circle(desk, name, config)
    add(desk, "second", "event: {heartbeat: first}")
    taken, said = Taken(), list[str]()
    schedule, begun = HeartbeatScheduler(desk, taken, said.append), time.time()  # type: ignore[arg-type]
    rounds(schedule, begun)
    registry.record_tick(desk, registry.TickRecord("k", "first", 0, 0, "asked", "", 0, 0.0), lambda old: old)
    for number in range(1, 40):
        known = set(taken.errands)
        rounds(schedule, begun + 6 * number)
        for key in set(taken.errands) - known:
            ended = registry.TickRecord(key, key.split("/")[1], 0, begun + number, "asked", "", 0, 0.0)
            registry.record_tick(desk, ended, lambda old: replace(old, pending=""))
    assert len(taken.errands) == 8
    assert [line.partition(": ")[2] for line in said] == ["not woken: 8 heartbeats woke each other in a row before it"]


def test_paused_it_does_not_tick_and_resumed_it_makes_nothing_up(desk: Desk) -> None:
    add(desk, "beat", "cadence: {every: 10s}")
    begun, taken = registry.load_state(desk, "beat").state.anchor, Taken()
    schedule = HeartbeatScheduler(desk, taken, print)  # type: ignore[arg-type]
    registry.set_paused(desk, "beat", begun + 5, True)
    rounds(schedule, begun + 10, begun + 100)
    registry.set_paused(desk, "beat", begun + 101, False)
    rounds(schedule, begun + 102)
    assert not taken.errands
    rounds(schedule, begun + 111)
    assert len(taken.errands) == 1


def test_a_file_that_cannot_be_used_is_told_of_once_and_keeps_no_other(desk: Desk) -> None:
    add(desk, "good", "cadence: {every: 10s}")
    registry.path_of(desk, "bad").write_text("no front matter")
    taken, said = Taken(), list[str]()
    begun = registry.load_state(desk, "good").state.anchor
    rounds(HeartbeatScheduler(desk, taken, said.append), begun + 10, begun + 11)  # type: ignore[arg-type]
    assert len(taken.errands) == 1
    assert len(said) == 1
    assert "bad" in said[0]


def test_a_source_that_fails_is_told_of_once_and_gone_on_with_when_it_works_again(desk: Desk, workspace: Path) -> None:
    add(desk, "beat", f"workspace: {workspace}", "event: {files: ['src/*.py'], every: 1s}")
    taken, said, away = Taken(), list[str](), workspace.with_name("away")
    schedule, begun = HeartbeatScheduler(desk, taken, said.append), time.time()  # type: ignore[arg-type]
    rounds(schedule, begun + 1)
    workspace.rename(away)
    rounds(schedule, begun + 2, begun + 2.5, begun + 3, begun + 4)
    assert len(said) == 1
    assert "no such workspace" in said[0]
    away.rename(workspace)
    rounds(schedule, begun + 5)
    assert not taken.errands, "what was out of reach has not changed"
    (workspace / "src" / "a.py").write_text("2 and more\n")
    rounds(schedule, begun + 6)
    assert len(taken.errands) == 1
    registry.update_state(desk, "beat", lambda old: replace(old, pending=""))
    workspace.rename(away)
    rounds(schedule, begun + 8, begun + 9)
    assert len(said) == 2, "it was well in between"


def test_the_cadence_goes_on_while_a_source_fails(desk: Desk, workspace: Path) -> None:
    no_name = "x" * 300
    add(
        desk,
        "beat",
        "cadence: {every: 10s}",
        f"event: {{git_ref: {{repository: {workspace}, ref: {no_name}}}, every: 1s}}",
    )
    begun, taken, said = registry.load_state(desk, "beat").state.anchor, Taken(), list[str]()
    rounds(HeartbeatScheduler(desk, taken, said.append), *(begun + second for second in range(1, 12)))  # type: ignore[arg-type]
    assert list(taken.errands) == [registry.tick_key("beat", begun + 10)]
    assert len(said) == 1
    assert "cannot be read" in said[0]


def test_commands_see_the_workspace_and_can_change_nothing(workspace: Path) -> None:
    plan = parse_config(f"---\nmodel: m\nworkspace: {workspace}\ncadence: {{every: 1m}}\n---\nx", "x")
    result = asyncio.run(run_in_sandbox(plan, "cat src/a.py; echo gone > src/a.py; rm -rf src"))
    assert result.stdout == "1\n"
    assert result.exit_code != 0
    assert (workspace / "src" / "a.py").read_text() == "1\n"
    with pytest.raises(BadInput, match="no such workspace"):
        asyncio.run(run_in_sandbox(plan.model_copy(update={"workspace": workspace / "none"}), "true"))


def test_every_source_changes_with_what_it_looks_at(desk: Desk, workspace: Path) -> None:
    git = ["git", "-C", str(workspace), "-c", "user.name=a", "-c", "user.email=a@b"]
    commit = [*git, "commit", "-q", "--allow-empty", "-m", "x"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run(commit, check=True)
    event = (
        f"{{files: [src], git_ref: {{repository: {workspace}, ref: main}}, command: cat src/a.py, heartbeat: other}}"
    )
    plan = parse_config(f"---\nmodel: m\nworkspace: {workspace}\nevent: {event}\n---\nx", "x")
    before = asyncio.run(read_fingerprints(desk, plan))
    assert asyncio.run(read_fingerprints(desk, plan)) == before
    (workspace / "src" / "a.py").write_text("2\n")
    os.utime(workspace / "src" / "a.py", (1, 1))
    subprocess.run(commit, check=True)
    subprocess.run([*git, "pack-refs", "--all"], check=True)
    registry.record_tick(desk, registry.TickRecord("k", "other", 1.0, 1.0, "asked", "", 0, 0.0), lambda old: old)
    after = asyncio.run(read_fingerprints(desk, plan))
    assert all(after[source] != before[source] for source in ("files", "git_ref", "command", "heartbeat"))


MCP_SERVER = """
import json, sys
def say(number, **result):
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    method, number = asked.get("method"), asked.get("id")
    if method == "initialize":
        version = asked["params"]["protocolVersion"]
        say(number, protocolVersion=version, capabilities={"tools": {}}, serverInfo={"name": "x", "version": "1"})
    elif method == "tools/list":
        say(number, tools=[{"name": "size", "description": "Of a file.", "inputSchema": {"type": "object"}}])
    elif method == "tools/call":
        text = open(asked["params"]["arguments"]["path"]).read()
        say(number, content=[{"type": "text", "text": str(len(text))}])
"""


def test_an_mcp_tool_is_a_source_in_a_sandbox_of_its_own(desk: Desk, workspace: Path) -> None:
    (workspace / "server.py").write_text(MCP_SERVER)
    file = workspace / "src" / "a.py"

    def seen(tool: str) -> str:
        source = f"{{command: [python3, -I, {workspace}/server.py], tool: {tool}, arguments: {{path: {file}}}}}"
        plan = parse_config(f"---\nmodel: m\nworkspace: {workspace}\nevent: {{mcp: {source}}}\n---\nx", "x")
        return asyncio.run(read_fingerprints(desk, plan))["mcp"]

    before = seen("size")
    assert seen("size") == before
    file.write_text("longer\n")
    assert seen("size") != before
    with pytest.raises(BadInput, match="has no tool 'weight'"):
        seen("weight")
    file.unlink()
    with pytest.raises(BadInput, match="the MCP tool size"):
        seen("size")


def test_one_that_is_there_is_not_replaced_and_one_that_is_not_cannot_be_removed(desk: Desk) -> None:
    add(desk, "beat", "cadence: {every: 10s}")
    with pytest.raises(BadInput, match="already"):
        add(desk, "beat", "cadence: {every: 10s}")
    registry.remove(desk, "beat")
    for act in (lambda: registry.remove(desk, "beat"), lambda: registry.set_paused(desk, "beat", 0, True)):
        with pytest.raises(BadInput, match="no such heartbeat"):
            act()


def test_a_real_round_hands_in_to_the_real_queue(desk: Desk) -> None:
    add(desk, "beat", "cadence: {every: 1s}")
    begun = registry.load_state(desk, "beat").state.anchor
    with open_job_client(desk) as jobs:
        rounds(HeartbeatScheduler(desk, jobs, print), begun + 1.5)
        assert jobs.unfinished() == [registry.tick_key("beat", begun + 1)]


def test_what_a_local_thread_answers_stays_here_whatever_the_heartbeat_says(desk: Desk) -> None:
    add(desk, "first", "cadence: {every: 1m}", "local_only: true")
    tick(desk, "first")
    thread = registry.load_state(desk, "first").thread
    add(desk, "second", "cadence: {every: 1m}", f"thread: {thread}")
    assert tick(desk, "second")["outcome"] == "asked"
    with desk.database.connect() as connection:
        assert [*connection.scalars(sa.select(notices.c.local_only))] == [True, True]


def test_a_heartbeat_that_becomes_local_only_makes_its_thread_so(desk: Desk) -> None:
    add(desk, "beat", "cadence: {every: 1m}")
    tick(desk, "beat")
    path = registry.path_of(desk, "beat")
    path.write_text(path.read_text().replace("cadence", "local_only: true\ncadence"))
    job = registry.tick_job(
        desk, "beat", registry.read_config(desk, "beat"), "heartbeat/beat/2026-11-15T10:00:00.000Z", "by hand"
    )
    asyncio.run(run_tick_job(desk, MemoryRecorder(job.key), job.payload))
    assert thread_directory(desk.home, registry.load_state(desk, "beat").thread).read().local_only


def test_files_that_are_no_heartbeats_do_not_keep_the_others(desk: Desk) -> None:
    add(desk, "beat", "cadence: {every: 10s}")
    (desk.home / "heartbeats" / "Read me.md").write_text("hello")
    (desk.home / "heartbeats" / "gone.md").symlink_to("nowhere")
    begun, taken, output = registry.load_state(desk, "beat").state.anchor, Taken(), list[str]()
    rounds(HeartbeatScheduler(desk, taken, output.append), begun + 10, begun + 11)  # type: ignore[arg-type]
    assert list(taken.errands) == [registry.tick_key("beat", begun + 10)]
    assert len(output) == 1
    assert "Read me" in output[0]
