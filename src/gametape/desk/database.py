"""The desk's own tables, in the same database as those of the workflow engine: one SQLite file, or PostgreSQL."""

import os
import sqlite3
import zlib
from collections.abc import Mapping
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from gametape.core.errors import BadInput, MissingDependency
from gametape.desk.storage_errors import damaged_database, storage_error
from gametape.record.lock import locked

_SECONDS_TO_WAIT_FOR_A_WRITER = 30

TABLES = sa.MetaData()
drafts = sa.Table(
    "desk_drafts",
    TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("origin", sa.Text, nullable=False),
    sa.Column("recipient", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("drafted", sa.Float, nullable=False),
    sa.Column("decided", sa.Float),
    sa.Column("note", sa.Text, nullable=False, default=""),
)
notices = sa.Table(
    "desk_notices",
    TABLES,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("origin", sa.Text, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("local_only", sa.Boolean, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("delivered", sa.Float),
    sa.Column("problem", sa.Text, nullable=False, default=""),
)
cancellations = sa.Table(
    "desk_cancellations",
    TABLES,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
)
heartbeats = sa.Table(
    "desk_heartbeats",
    TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
)
ticks = sa.Table(
    "desk_ticks",
    TABLES,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("heartbeat", sa.Text, nullable=False, index=True),
    sa.Column("scheduled", sa.Float, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("tokens", sa.Integer, nullable=False),
    sa.Column("cost_usd", sa.Float, nullable=False),
)


def database_url(home: Path, given: str | None) -> str:
    """The given URL, else $GAMETAPE_DATABASE, else a file under the home."""
    url = given or os.environ.get("GAMETAPE_DATABASE") or f"sqlite:///{home / 'desk' / 'desk.sqlite'}"
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        raise BadInput(f"{url}: not a database URL; give sqlite:///FILE or postgresql://USER@HOST/NAME") from None
    kind = parsed.get_backend_name()
    if kind not in ("sqlite", "postgresql"):
        raise BadInput(f"{kind}: the desk keeps its state in SQLite or PostgreSQL")
    if kind == "sqlite" and not parsed.database:
        raise BadInput(f"{url}: names no file")
    return url


def is_sqlite(url: str) -> bool:
    return sa.make_url(url).get_backend_name() == "sqlite"


def connect(url: str, name: str = "gametape") -> sa.Engine:
    """An engine for the desk's tables, whose database must exist. PostgreSQL lists its connections under `name`."""
    if is_sqlite(url):
        engine = sa.create_engine(url)
        sa.event.listen(engine, "connect", _configure_sqlite)
        return engine
    address = sa.make_url(url).set(drivername="postgresql+psycopg")
    return sa.create_engine(address, pool_pre_ping=True, connect_args={"application_name": name})


def unreachable_error(url: sa.URL, error: BaseException) -> MissingDependency:
    message = str(getattr(error, "orig", None) or error).splitlines()[0]
    return MissingDependency(f"{url.render_as_string()}: the desk's database cannot be used: {message}")


def insert_once(connection: sa.Connection, table: sa.Table, values: Mapping[str, Any]) -> bool:
    """Insert a row unless one of its keys exists already; returns whether it was inserted."""
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(table).values(**values).on_conflict_do_nothing()
    return bool(connection.execute(statement).rowcount)


def upsert(connection: sa.Connection, table: sa.Table, key: str, values: Mapping[str, Any]) -> None:
    """Insert a row, or replace the values of the row with this key."""
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(table).values(**values)
    rest = {name: value for name, value in values.items() if name != key}
    connection.execute(statement.on_conflict_do_update(index_elements=[key], set_=rest))


def _configure_sqlite(connection: Any, _record: object) -> None:
    """Readers do not wait for writers, and writers wait for each other instead of failing."""
    connection.execute(f"PRAGMA busy_timeout={_SECONDS_TO_WAIT_FOR_A_WRITER * 1000}")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.isolation_level = "IMMEDIATE"


def open_database(home: Path, url: str) -> sa.Engine:
    """An engine on a database that has the tables of the workflow engine and of the desk. Raises `MissingDependency`
    where the database cannot be used."""
    try:
        (home / "desk").mkdir(parents=True, exist_ok=True)
        if is_sqlite(url):
            _make_once(home, Path(str(sa.make_url(url).database)))
        else:
            with locked(home / "desk" / "preparing.lock"):
                _prepare(url)
        engine = connect(url)
        if is_sqlite(url) and not _is_ready(engine):
            with locked(home / "desk" / "preparing.lock"):
                _prepare(url)
    except sa.exc.DBAPIError as error:
        address = sa.make_url(url)
        raise storage_error(error, address.render_as_string()) or unreachable_error(address, error) from error
    except sqlite3.Error as error:
        raise storage_error(error, url) or unreachable_error(sa.make_url(url), error) from error
    except OSError as error:
        raise storage_error(error) or BadInput(f"{error.filename or home}: {error.strerror}") from error
    if not is_sqlite(url):
        _claim(home, engine)
    return engine


def require_writable(file: Path) -> None:
    """SQLite writes beside its file even to read it. Raises `BadInput` where it could not."""
    file.parent.mkdir(parents=True, exist_ok=True)
    for place in (file, file.parent):
        if place.exists() and not os.access(place, os.W_OK):
            raise BadInput(f"{place}: the desk's database cannot be written; give --home another directory")


def check_database(url: str) -> None:
    """Read an SQLite database as a whole. Raises `DamagedDatabase`."""
    if is_sqlite(url):
        engine = connect(url)
        try:
            with engine.connect() as connection:
                said = connection.scalar(sa.text("PRAGMA quick_check(1)"))
        except sa.exc.DBAPIError as error:
            raise storage_error(error, url) or unreachable_error(sa.make_url(url), error) from error
        finally:
            engine.dispose()
        if said != "ok":
            raise damaged_database(url, said)


def _make_once(home: Path, file: Path) -> None:
    """Make a new SQLite database beside its place and move it there whole: one whose making was cut off, by a kill or
    a full disk, could not be made ready any more."""
    require_writable(file)
    if _is_begun(file):
        return
    with locked(home / "desk" / "preparing.lock"):
        if _is_begun(file):
            return
        new = file.with_name(f"{file.name}.new")
        for left in file.parent.glob(f"{new.name}*"):
            left.unlink()
        _prepare(f"sqlite:///{new}")
        with closing(sqlite3.connect(new)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        new.replace(file)


def _is_begun(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def _prepare(url: str) -> None:
    """Create or upgrade the tables."""
    from gametape.desk.workflow_engine import migrate  # noqa: PLC0415 - slow to import, and seldom needed

    migrate(url)
    engine = connect(url)
    try:
        TABLES.create_all(engine)
        if is_sqlite(url):
            with engine.begin() as connection:
                connection.execute(sa.text(f"PRAGMA user_version = {_shape()}"))
    finally:
        engine.dispose()


def _is_ready(engine: sa.Engine) -> bool:
    """SQLite keeps a version number in the file itself."""
    with engine.connect() as connection:
        return bool(connection.scalar(sa.text("PRAGMA user_version")) == _shape())


def _shape() -> int:
    tables = ",".join(f"{table.name}({','.join(table.columns.keys())})" for table in TABLES.sorted_tables)
    return zlib.crc32(f"{version('dbos')} {tables}".encode()) >> 1


def _claim(home: Path, engine: sa.Engine) -> None:
    """A PostgreSQL database belongs to one home on one machine: its rows refer to files there."""
    this_home = f"{home} on {os.uname().nodename}"
    with engine.begin() as connection:
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(7161953)"))
        connection.execute(sa.text("CREATE TABLE IF NOT EXISTS desk_home (home TEXT NOT NULL)"))
        owner = connection.scalar(sa.text("SELECT home FROM desk_home"))
        if owner is None:
            connection.execute(sa.text("INSERT INTO desk_home VALUES (:home)"), {"home": this_home})
    if owner not in (None, this_home):
        engine.dispose()
        raise BadInput(f"the database holds the desk of {owner}; give {this_home} a database of its own")
