"""The desk as work sees it, opened on a home and its database."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from gametape.desk.database import database_url
from gametape.desk.delivery import channels
from gametape.desk.effects import Effects
from gametape.desk.errands import Desk
from gametape.desk.notify import Notices
from gametape.desk.outbox import Outbox
from gametape.desk.preparing import prepare
from gametape.desk.room import want_of_room


@contextmanager
def open_desk(home: Path, database: str | None = None) -> Iterator[Desk]:
    """To look and to hand in; what runs errands is the runner. Raises `Lacking` where the database cannot be used, also
    where it cannot be any longer."""
    url = database_url(home, database)
    engine = prepare(home, url)
    try:
        settings = channels(home)
        yield Desk(
            home=home,
            url=url,
            database=engine,
            effects=Effects(engine),
            outbox=Outbox(engine, settings.outbox, home / "outbox"),
            notices=Notices(engine, settings.notify),
        )
    except (sa.exc.DBAPIError, OSError) as error:
        if (found := want_of_room(error)) is None:
            raise
        raise found from error
    finally:
        engine.dispose()
