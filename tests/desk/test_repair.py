"""A damaged database: noticed in a line that names the verb, and made again of what can be had."""

import asyncio
import json
import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.desk import repair as repair_module
from gametape.desk.database import check_database
from gametape.desk.database_backup import back_up, backups_of
from gametape.desk.desk import open_desk
from gametape.desk.heartbeats import registry
from gametape.desk.jobs import Job
from gametape.desk.outbox import AlreadyDecided
from gametape.desk.repair import repair
from gametape.desk.runner import RunnerConflict, try_file_lock
from gametape.desk.storage_errors import DamagedDatabase
from gametape.desk.threads.lifecycle import create_thread
from gametape.desk.threads.thread import Thread, new_thread_id
from gametape.desk.vault.vault import Vault
from gametape.desk.workflow_engine import open_job_client

DRAFTS = 400
BEAT = "---\nmodel: scripted:none\ncadence: {every: 1h}\n---\nIs all well?\n"
NOISE = bytes(range(256)) * 16


@pytest.fixture
def url(home: Path) -> str:
    return f"sqlite:///{home / 'desk' / 'desk.sqlite'}"


def fill(home: Path, first: int = 0, last: int = DRAFTS) -> None:
    with open_desk(home) as desk, open_job_client(desk) as jobs:
        for number in range(first, last):
            desk.outbox.draft(f"key-{number}", "thread-1", "ann", f"draft {number}", "text " * 40)
            if number % 100 == 0:
                jobs.submit(Job("goal", f"goal-{number}", {"goal_id": f"goal-{number}"}))


def close_wal(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def spoil(file: Path, table: str = "desk_drafts") -> None:
    """Overwrite a third of the pages that hold a table's rows."""
    with closing(sqlite3.connect(file)) as database:
        (size,) = database.execute("PRAGMA page_size").fetchone()
    data = bytearray(file.read_bytes())
    pages = [start for start in range(size, len(data), size) if b"key-" in data[start : start + size]]
    assert pages, table
    for start in pages[len(pages) // 3 : 2 * len(pages) // 3]:
        data[start : start + size] = NOISE[:size]
    file.write_bytes(data)


def subjects(home: Path) -> set[str]:
    with open_desk(home) as desk:
        return {draft.subject for draft in desk.outbox.list()}


def test_what_is_whole_is_left_as_it_is(home: Path, url: str) -> None:
    fill(home, last=3)
    before = sorted(path.name for path in (home / "desk").iterdir())
    report = repair(home)
    assert (report.damaged, report.lost, report.kept) == ("", [], "")
    assert sorted({*before, "desk.lock"}) == sorted({path.name for path in (home / "desk").iterdir()} | {"desk.lock"})
    check_database(url)


def test_damaged_pages_are_noticed_and_their_rows_come_from_the_backup(home: Path, url: str) -> None:
    file = home / "desk" / "desk.sqlite"
    fill(home)
    assert back_up(url) is not None
    fill(home, DRAFTS, DRAFTS + 10)
    close_wal(file)
    spoil(file)
    with pytest.raises(DamagedDatabase, match="desk repair") as raised:
        check_database(url)
    assert raised.value.exit_code == 3
    damaged = file.read_bytes()
    report = repair(home)
    check_database(url)
    expected = {f"draft {number}" for number in range(DRAFTS)}
    assert subjects(home) >= expected, "what was in the backup is there"
    assert report.read["desk_drafts"] > 100
    assert report.restored["desk_drafts"] > 10
    assert (Path(report.kept) / file.name).read_bytes() == damaged, "nothing is deleted"
    with open_desk(home) as desk, open_job_client(desk) as jobs:
        assert set(jobs.unfinished()) == {f"goal-{number}" for number in range(0, DRAFTS + 10, 100)}
        unsure = [draft for draft in desk.outbox.list() if draft.state == "sending"]
        assert 0 < len(unsure) <= report.restored["desk_drafts"]
        with pytest.raises(AlreadyDecided, match="may have arrived"):
            asyncio.run(desk.outbox.approve(unsure[0].id))
    assert any("not known whether they left" in line for line in report.lost)
    assert repair(home).damaged == ""


def test_noise_with_no_backup_becomes_an_empty_desk_whose_heartbeats_know_their_threads(home: Path) -> None:
    thread, script = new_thread_id(), home / "turns.jsonl"
    script.write_text('{"text": "Hello."}\n')
    made = Thread(
        thread_id=thread,
        model=f"scripted:{script}",
        created=time.time(),
        vault=str(home / "vault"),
        store=thread,
        title="heartbeat beat",
    )
    asyncio.run(create_thread(home, made))
    with open_desk(home) as desk:
        registry.add(desk, "beat", BEAT)
        registry.update_state(desk, "beat", lambda old: replace(old, thread=thread))
    (home / "desk" / "desk.sqlite").write_bytes(NOISE)
    for side in ("-wal", "-shm"):
        (home / "desk" / f"desk.sqlite{side}").unlink(missing_ok=True)
    with pytest.raises(DamagedDatabase, match="desk repair"), open_desk(home):
        pass
    report = repair(home)
    assert (report.rebuilt, report.read, report.restored) == (["beat"], {}, {})
    with open_desk(home) as desk:
        assert registry.load_state(desk, "beat").thread == thread
    assert json.loads((Path(report.kept) / "repair.json").read_text())["rebuilt"] == ["beat"]


def test_a_repair_that_is_cut_off_is_begun_again_and_loses_nothing(
    home: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / "desk" / "desk.sqlite"
    fill(home, last=120)
    close_wal(file)
    spoil(file)
    (home / "whole").mkdir()
    shutil.copytree(home / "desk", home / "whole/desk")
    repair(home / "whole")
    for name in ("_take_over", "sync_directory", "_bind_heartbeats", "_tell_losses"):
        with monkeypatch.context() as patched:
            patched.setattr(repair_module, name, _die)
            with pytest.raises(KeyboardInterrupt):
                repair(home)
    repair(home)
    check_database(url)
    assert subjects(home) == subjects(home / "whole")


def test_what_has_happened_since_a_repair_was_cut_off_counts(
    home: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / "desk" / "desk.sqlite"
    fill(home, last=120)
    close_wal(file)
    spoil(file)
    with monkeypatch.context() as patched:
        patched.setattr(repair_module, "_take_over", _die)
        with pytest.raises(KeyboardInterrupt):
            repair(home)
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE desk_drafts SET state = 'sent' WHERE rowid = 1")
        database.commit()
    repair(home)
    check_database(url)
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT state FROM desk_drafts WHERE subject = 'draft 0'").fetchall() == [("sent",)]


def test_nobody_repairs_what_somebody_runs(home: Path, url: str) -> None:
    lock = try_file_lock(url)
    assert lock is not None
    with pytest.raises(RunnerConflict, match="end it first"):
        repair(home)
    lock.release()
    with pytest.raises(BadInput, match="PostgreSQL has tools"):
        repair(home, "postgresql://a@127.0.0.1/b")
    with pytest.raises(BadInput, match="there is no database"):
        repair(home / "elsewhere")


def test_backups_are_few_whole_and_not_too_often(home: Path, url: str) -> None:
    file, day = home / "desk" / "desk.sqlite", 86_400.0
    made = [back_up(url, 1_800_000_000 + hours * 3600.0) for hours in range(0, 40 * 24, 2)]
    assert len([path for path in made if path]) == 40 * 24 // 6
    kept = backups_of(file)
    assert len(kept) == 7
    assert kept[0] == [path for path in made if path][-1]
    assert (kept[0].stat().st_mtime - kept[-1].stat().st_mtime) / day == pytest.approx(4, abs=1)
    assert not list(kept[0].parent.glob("*.partial"))
    file.write_bytes(NOISE)
    assert back_up(url, 1_900_000_000) is None
    assert backups_of(file) == kept, "a damaged database takes no backup's place"


def test_a_damaged_log_of_reads_is_set_aside(home: Path) -> None:
    vault = Vault.init(home / "vault")
    vault.reads.file.write_bytes(NOISE)
    with pytest.raises(DamagedDatabase, match="desk repair"):
        vault.reads.usage()
    report = repair(home)
    assert len(report.read_logs) == 1
    assert Path(report.read_logs[0]).read_bytes() == NOISE
    assert vault.reads.usage() == []


def _die(*_words: object) -> None:
    raise KeyboardInterrupt
