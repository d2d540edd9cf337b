"""The digest of a day: what was done, what it cost and what is worth a worry, the same for the same records."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.desk.desk import open_desk
from gametape.desk.digest import make_digest
from gametape.desk.heartbeats import registry
from gametape.desk.heartbeats.config import parse_config
from gametape.desk.heartbeats.job import run_tick_job
from gametape.desk.jobs import Desk
from gametape.desk.threads.thread import thread_directory
from gametape.desk.vault.vault import NoteWriter, Vault
from tests.desk.steps import Kept, Killed, MemoryRecorder

DAY = 86_400.0


@pytest.fixture
def desk(home: Path) -> Iterator[Desk]:
    with open_desk(home) as opened:
        yield opened


def tick(desk: Desk, name: str, minute: int = 0, stored: Kept | None = None, **dying: object) -> dict[str, object]:
    key = f"heartbeat/{name}/2026-11-15T09:{minute:02}:00.000Z"
    job = registry.tick_job(desk, name, registry.read_config(desk, name), key, "by hand")
    return asyncio.run(run_tick_job(desk, MemoryRecorder(job.key, stored, **dying), job.payload))  # type: ignore[arg-type]


def add(desk: Desk, name: str, *lines: str, answer: str = "Bob asks about lunch.") -> None:
    script = desk.home / f"{name}.jsonl"
    script.write_text(json.dumps({"text": answer}) + "\n")
    registry.add(
        desk, name, "\n".join(["---", f"model: scripted:{script}", "cadence: {every: 1h}", *lines, "---", "x"])
    )


def add_digest(desk: Desk) -> None:
    registry.add(desk, "digest", "---\ndigest: true\ncadence: {cron: '0 7 * * *'}\n---\n")


def test_it_tells_of_work_cost_and_worries(desk: Desk) -> None:
    began = time.time()
    add(desk, "beat")
    tick(desk, "beat")
    add(desk, "poor", "budget: {tokens: 0}")
    tick(desk, "poor")
    registry.path_of(desk, "torn").write_text("---\nmodel")
    desk.outbox.draft("key", "beat", "ann", "lunch", "today?")
    Vault.init(desk.home / "vault").write("people/bob", "likes lunch", NoteWriter("thread-1", 1, "key"))
    thread = thread_directory(desk.home, registry.load_state(desk, "beat").thread)
    thread.update(paused="it\nrepeats itself")
    told = make_digest(desk, began - 1, time.time() + 1)
    name = f"{thread.root.name} (heartbeat beat)"
    assert told.did == [
        f"{name}: 1 message, 1 answer, 1 turn",
        "heartbeat beat: 1 tick (1 asked)",
        "heartbeat poor: 1 tick (1 budget)",
        "outbox: 1 draft written, 0 sent",
        "vault: 1 write to 1 note",
    ]
    assert told.spent == [(name, registry.tick_log(desk, "beat")[0].tokens, 0.0)]
    assert told.worries[0] == f"{name} is paused: it repeats itself"
    assert [line.partition(":")[0] for line in told.worries[1:]] == [
        "heartbeat poor",
        "heartbeat torn cannot tick",
        "outbox",
    ]
    assert make_digest(desk, told.since, told.until).text == told.text
    quiet = make_digest(desk, began - 2 * DAY, began - DAY)
    assert (quiet.did, quiet.tokens) == ([], 0)


def test_a_tick_of_it_asks_nobody_and_tells_once_however_often_it_dies(desk: Desk) -> None:
    add(desk, "beat")
    tick(desk, "beat")
    add_digest(desk)
    stored, ended = Kept(), None
    for life in range(20):
        try:
            ended = tick(desk, "digest", 1, stored, die_at=1, after_keeping=life % 2 == 1)
        except Killed:
            continue
        break
    assert ended is not None
    assert (ended["outcome"], ended["tokens"]) == ("digest", 0)
    told = [notice for notice in desk.notifications.since(0) if notice.origin == "heartbeat digest"]
    assert [notice.text for notice in told] == [ended["detail"]]
    assert "heartbeat beat: 1 tick (1 asked)" in str(ended["detail"])
    assert not (desk.home / "threads" / registry.load_state(desk, "digest").thread).exists()
    assert "heartbeat beat" not in str(tick(desk, "digest", 2)["detail"]), "it goes on from the last one"


def test_what_may_not_leave_this_machine_is_not_posted_in_a_digest(desk: Desk) -> None:
    add(desk, "beat", "local_only: true")
    tick(desk, "beat")
    assert make_digest(desk, 0, time.time() + 1).local_only


@pytest.mark.parametrize("more", ["model: m\n---\n", "thread: thread-1\n---\n", "---\nask"])
def test_it_has_no_agent(more: str) -> None:
    with pytest.raises(BadInput, match="a digest asks no agent"):
        parse_config(f"---\ndigest: true\ncadence: {{every: 1d}}\n{more}", "x")
