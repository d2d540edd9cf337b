"""Making the database ready, once, however many processes come at the same time."""

import os
import zlib
from importlib.metadata import version
from pathlib import Path

import sqlalchemy as sa

from gametape.core.errors import BadInput
from gametape.desk.database import TABLES, connect, is_sqlite, unreachable
from gametape.desk.room import want_of_room
from gametape.sandbox.snapshots.durable import locked


def prepare(home: Path, url: str) -> sa.Engine:
    """An engine on a database that has the tables of the workflow engine and of the desk. Raises `Lacking` where the
    database says no."""
    try:
        (home / "desk").mkdir(parents=True, exist_ok=True)
        if is_sqlite(url):
            Path(str(sa.make_url(url).database)).parent.mkdir(parents=True, exist_ok=True)
        else:
            _migrate(home, url)
        engine = connect(url)
        if is_sqlite(url) and not _is_ready(engine):
            _migrate(home, url)
            with engine.begin() as connection:
                connection.execute(sa.text(f"PRAGMA user_version = {_shape()}"))
    except sa.exc.DBAPIError as error:
        address = sa.make_url(url)
        raise want_of_room(error, address.render_as_string()) or unreachable(address, error) from error
    except OSError as error:
        raise want_of_room(error) or BadInput(f"{error.filename or home}: {error.strerror}") from error
    if not is_sqlite(url):
        _claim(home, engine)
    return engine


def _migrate(home: Path, url: str) -> None:
    from gametape.desk.durable import migrate  # noqa: PLC0415 - slow to import, and seldom needed

    with locked(home / "desk" / "preparing.lock"):
        migrate(url)
        engine = connect(url)
        try:
            TABLES.create_all(engine)
        finally:
            engine.dispose()


def _is_ready(engine: sa.Engine) -> bool:
    """SQLite has a number for this in the file itself."""
    with engine.connect() as connection:
        return bool(connection.scalar(sa.text("PRAGMA user_version")) == _shape())


def _shape() -> int:
    tables = ",".join(f"{table.name}({','.join(table.columns.keys())})" for table in TABLES.sorted_tables)
    return zlib.crc32(f"{version('dbos')} {tables}".encode()) >> 1


def _claim(home: Path, engine: sa.Engine) -> None:
    """The files of goals and threads lie in one home on one machine, and the rows in the database mean those."""
    mine = f"{home} on {os.uname().nodename}"
    with engine.begin() as connection:
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(7161953)"))
        connection.execute(sa.text("CREATE TABLE IF NOT EXISTS desk_home (home TEXT NOT NULL)"))
        owner = connection.scalar(sa.text("SELECT home FROM desk_home"))
        if owner is None:
            connection.execute(sa.text("INSERT INTO desk_home VALUES (:home)"), {"home": mine})
    if owner not in (None, mine):
        engine.dispose()
        raise BadInput(f"the database holds the desk of {owner}; give {mine} a database of its own")
