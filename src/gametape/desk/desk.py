"""Opens the desk on a home directory and its database."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from gametape.desk.database import database_url, open_database
from gametape.desk.delivery import load_delivery_config
from gametape.desk.jobs import Desk
from gametape.desk.notifications import NotificationStore
from gametape.desk.outbox import Outbox
from gametape.desk.storage_errors import storage_error


@contextmanager
def open_desk(home: Path, database: str | None = None) -> Iterator[Desk]:
    """Open the desk to read it and to submit jobs; the runner is what runs them. Raises `MissingDependency` where the
    database cannot be used, `OutOfDiskSpace` where the disk is full."""
    url = database_url(home, database)
    settings = load_delivery_config(home)
    engine = open_database(home, url)
    try:
        yield Desk(
            home=home,
            database_url=url,
            database=engine,
            outbox=Outbox(engine, settings.outbox, home / "outbox"),
            notifications=NotificationStore(engine, settings.notify),
        )
    except (sa.exc.DBAPIError, OSError) as error:
        if (full := storage_error(error)) is None:
            raise
        raise full from error
    finally:
        engine.dispose()
