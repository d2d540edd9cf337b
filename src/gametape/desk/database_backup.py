"""Copies of the desk's SQLite database, made by whoever runs the desk, and never more than a few of them."""

import os
import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path

import sqlalchemy as sa

from gametape.desk.database import is_sqlite

_SECONDS_BETWEEN = 6 * 3600.0
_NEWEST, _DAYS = 3, 4
"""Kept: the newest ones, and the last one of each of so many days before them."""
_ROOM = 3
"""No copy is made where it would take more than one in so many of the bytes that are left."""
_STAMP = "%Y%m%dT%H%M%SZ"


def database_file(url: str) -> Path:
    """The file of an SQLite address."""
    return Path(str(sa.make_url(url).database))


def backup_directory(file: Path) -> Path:
    return file.with_name("backups")


def backups_of(file: Path) -> Sequence[Path]:
    """The copies of a database, the newest first."""
    return sorted(backup_directory(file).glob(f"{file.stem}-*.sqlite"), reverse=True)


def back_up(url: str, now: float | None = None) -> Path | None:
    """Copy the database if the last copy is some hours old, and drop what is not to be kept. None where nothing was
    copied: it is too early, there is no room, it is damaged, or it is not SQLite. It may be in use meanwhile."""
    if not is_sqlite(url):
        return None
    file, now = database_file(url), time.time() if now is None else now
    known, target = backups_of(file), backup_directory(file) / f"{file.stem}-{time.strftime(_STAMP, time.gmtime(now))}"
    target = target.with_suffix(".sqlite")
    if known and abs(now - known[0].stat().st_mtime) < _SECONDS_BETWEEN:
        return None
    partial = target.with_suffix(".partial")
    try:
        if _ROOM * file.stat().st_size > shutil.disk_usage(file.parent).free:
            return None
        target.parent.mkdir(exist_ok=True)
        for left in target.parent.glob("*.partial"):
            left.unlink()
        _copy(file, partial)
        os.utime(partial, (now, now))
        partial.replace(target)
    except (OSError, sqlite3.Error):
        partial.unlink(missing_ok=True)
        return None
    for old in _outdated(backups_of(file)):
        old.unlink(missing_ok=True)
    return target


def _copy(file: Path, target: Path) -> None:
    """A whole copy, or `sqlite3.Error`: nothing damaged becomes a backup."""
    with closing(sqlite3.connect(file, timeout=30)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
        if (said := copy.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise sqlite3.DatabaseError(said)
    with target.open("rb+") as opened:
        os.fsync(opened.fileno())


def _outdated(newest_first: Sequence[Path]) -> Sequence[Path]:
    older = newest_first[_NEWEST:]
    days = [next(group) for _day, group in groupby(older, lambda path: path.stem.partition("T")[0])]
    return [path for path in older if path not in days[:_DAYS]]
