"""`gametape desk repair`: a new database from what can be read of a damaged one, from its backups and from the home.

Nothing is deleted: the damaged files are kept beside the new database. A repair that is cut off at any instant is begun
again, and takes what earlier ones had set aside as well.
"""

import json
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput, GametapeError
from gametape.core.plural import count_of
from gametape.desk.database import database_url, is_sqlite, open_database, require_writable
from gametape.desk.database_backup import backups_of, database_file
from gametape.desk.heartbeats.cadence import CadenceState
from gametape.desk.heartbeats.registry import HeartbeatState, dump_state, parse_state
from gametape.desk.runner import RunnerConflict, file_lock_holder, try_file_lock
from gametape.desk.threads.thread import Thread, ThreadDirectory, threads_root
from gametape.desk.vault.read_log import READ_LOG
from gametape.record.atomic import sync_directory, write_atomically
from gametape.record.errors import write_error

_SIDES = ("", "-wal", "-shm")
_REPORT = "repair.json"
_OWN = ("dbos_migrations", "queues", "application_versions", "sqlite_sequence")
"""Tables that a new database has its own rows of."""
_UNDECIDED = ("draft", "approved")
_BATCH = 200
Row = dict[str, Any]


@dataclass
class RepairReport:
    """What became of a database."""

    database: str
    damaged: str
    """What is wrong with it; empty where nothing is."""
    kept: str = ""
    """Where the damaged files are."""
    read: dict[str, int] = field(default_factory=dict)
    """Rows that were read from the damaged files, by table."""
    restored: dict[str, int] = field(default_factory=dict)
    """Rows that only a backup has, or what an earlier repair had set aside before it was cut off, by table."""
    rebuilt: list[str] = field(default_factory=list)
    """Heartbeats that were bound to their threads again."""
    backup: str = ""
    """The newest backup that could be read."""
    read_logs: list[str] = field(default_factory=list)
    """Damaged logs of which agent read which note, set aside under these names."""
    lost: list[str] = field(default_factory=list)
    """What may be missing now, in sentences."""


def repair(home: Path, given_url: str | None = None) -> RepairReport:
    """Repair the desk's database. Raises `RunnerConflict` while somebody runs the desk, and `BadInput` for a database
    that is no SQLite file."""
    url = database_url(home, given_url)
    if not is_sqlite(url):
        raise BadInput("only a database in SQLite is repaired here; PostgreSQL has tools of its own")
    file = database_file(url)
    if not file.exists():
        raise BadInput(f"{file}: there is no database; the desk makes one when it is first used")
    require_writable(file)
    lock = try_file_lock(url)
    if lock is None:
        raise RunnerConflict(f"{file_lock_holder(url)} runs this desk; end it first")
    try:
        report = RepairReport(str(file), _damage(file))
        if report.damaged:
            _rebuild(home, file, report)
        _set_read_logs_aside(home, report)
        return report
    except OSError as error:
        raise write_error(Path(error.filename or file), error) from None
    finally:
        lock.release()


def _damage(file: Path) -> str:
    """What is wrong with a database, in a line; nothing where it is whole."""
    try:
        with closing(sqlite3.connect(file, timeout=30)) as database:
            said = [row[0] for row in database.execute("PRAGMA integrity_check(1)")]
    except sqlite3.OperationalError as error:
        raise BadInput(f"{file}: cannot be examined: {error}") from None
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if said == ["ok"] else str(said[0])


def _rebuild(home: Path, file: Path, report: RepairReport) -> None:
    kept = file.with_name(f"damaged-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(3)}")
    _set_aside(file, kept)
    report.kept = str(kept)
    fresh = kept / "repaired.sqlite"
    fresh.unlink(missing_ok=True)
    open_database(home, f"sqlite:///{fresh}").dispose()
    cut_off = sorted((place for place in file.parent.glob("damaged-*") if place != kept), reverse=True)
    older = [place / file.name for place in cut_off if not (place / _REPORT).exists()]
    backups = [*backups_of(file)]
    with closing(sqlite3.connect(fresh)) as new:
        report.read = _take_over(new, kept / file.name)
        for source in (*older, *backups):  # what has happened since is not in them
            for table, count in _take_over(new, source, from_backup=True).items():
                report.restored[table] = report.restored.get(table, 0) + count
                report.backup = report.backup or (str(source) if source in backups else "")
        report.rebuilt = _bind_heartbeats(new, home)
        _tell_losses(new, file, report)
        new.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        new.execute("PRAGMA journal_mode=DELETE")
    for side in _SIDES[1:]:
        file.with_name(file.name + side).unlink(missing_ok=True)  # copies of them are set aside
    fresh.replace(file)
    sync_directory(file.parent)
    for source in (kept / file.name, *older):
        write_atomically(source.parent / _REPORT, json.dumps(asdict(report), indent=1).encode())


def _set_aside(file: Path, kept: Path) -> None:
    """Copy the database and its side files, and put the copies on disk."""
    kept.mkdir()
    for side in _SIDES:
        with suppress(FileNotFoundError):
            copy = shutil.copy2(file.with_name(file.name + side), kept)
            with Path(copy).open("rb+") as opened:
                os.fsync(opened.fileno())
    sync_directory(kept)
    sync_directory(kept.parent)


def _set_read_logs_aside(home: Path, report: RepairReport) -> None:
    """A vault does without: a new log begins with the next read."""
    vaults = {home / "vault", *(Path(thread.vault) for thread in _threads(home))}
    for log in sorted(vault / READ_LOG for vault in vaults):
        if log.exists() and _damage(log):
            aside = log.with_name(f"{log.name}.damaged-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}")
            log.rename(aside)
            report.read_logs.append(str(aside))
            report.lost.append(f"which agent read which note of {log.parents[2]} until now is lost")


def _threads(home: Path) -> Iterator[Thread]:
    for file in sorted(threads_root(home).glob("*/thread.json")):
        with suppress(GametapeError, OSError, ValueError):
            yield ThreadDirectory(file.parent).read()


def _take_over(new: sqlite3.Connection, source: Path, from_backup: bool = False) -> dict[str, int]:
    """Insert the rows of a source that the new database has not, and return how many, by table."""
    taken: dict[str, int] = {}
    try:
        old = sqlite3.connect(source, timeout=30)
    except sqlite3.Error:
        return taken
    with closing(old):
        old.row_factory = sqlite3.Row
        old.text_factory = lambda data: data.decode("utf-8", "replace")
        for (table,) in new.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid").fetchall():
            if table in _OWN:
                continue
            columns = [row[1] for row in new.execute(f'PRAGMA table_info("{table}")')]
            with new:
                count = sum(_insert(new, table, columns, row, from_backup) for row in _readable_rows(old, table))
            if count:
                taken[table] = count
    return taken


def _readable_rows(old: sqlite3.Connection, table: str) -> Iterator[Row]:
    """Every row of a table that can be read, from both ends of a damaged part."""
    first, last = -(1 << 62), 1 << 62
    for order, compare in (("ASC", ">"), ("DESC", "<")):
        query = f'SELECT rowid AS "@", * FROM "{table}" WHERE rowid {compare} ? AND rowid {{}} ? ORDER BY rowid {order}'
        bounds = (first, last) if order == "ASC" else (last, first)
        query = query.format("<" if order == "ASC" else ">")
        try:
            for row in old.execute(query, bounds):
                values = dict(row)
                number = values.pop("@")
                first, last = (number, last) if order == "ASC" else (first, number)
                yield values
        except (sqlite3.Error, TypeError):
            continue
        return


def _insert(new: sqlite3.Connection, table: str, columns: Sequence[str], row: Row, from_backup: bool) -> bool:
    """Insert a row unless its key is there or it makes no sense."""
    known = {name: value for name, value in row.items() if name in columns}
    if table == "desk_heartbeats" and not _is_state(known.get("state")):
        return False
    if table == "desk_drafts" and from_backup and known.get("state") in _UNDECIDED:
        known["state"] = "sending"  # it may have been sent since: a person decides whether it is sent again
    names = ", ".join(f'"{name}"' for name in known)
    try:
        places = ", ".join("?" * len(known))
        done = new.execute(f'INSERT OR IGNORE INTO "{table}" ({names}) VALUES ({places})', [*known.values()])
    except sqlite3.Error:
        return False
    return bool(done.rowcount)


def _is_state(text: object) -> bool:
    try:
        parse_state(str(text))
    except ValueError:
        return False
    return True


def _bind_heartbeats(new: sqlite3.Connection, home: Path) -> list[str]:
    """Give a heartbeat whose state is lost its thread again; the thread has the heartbeat's name."""
    known = {name for (name,) in new.execute("SELECT name FROM desk_heartbeats")}
    threads = {thread.title: thread.thread_id for thread in _threads(home)}
    rebuilt = []
    for file in sorted((home / "heartbeats").glob("*.md")):
        if file.stem not in known and (name := threads.get(f"heartbeat {file.stem}")):
            state = dump_state(HeartbeatState(CadenceState(time.time()), thread=name))
            with new:
                new.execute("INSERT INTO desk_heartbeats VALUES (?, ?)", (file.stem, state))
            rebuilt.append(file.stem)
    return rebuilt


def _tell_losses(new: sqlite3.Connection, file: Path, report: RepairReport) -> None:
    since = "it was made"
    if report.backup or backups_of(file):
        newest = Path(report.backup) if report.backup else backups_of(file)[0]
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(newest.stat().st_mtime))
    report.lost.append(
        f"jobs, ticks, drafts and notifications that were stored since {since} and could not be read are lost"
    )
    if drafts := new.execute("SELECT count(*) FROM desk_drafts WHERE state = 'sending'").fetchone()[0]:
        report.lost.append(f"of {count_of(drafts, 'draft')} it is not known whether they left: see `outbox list`")
