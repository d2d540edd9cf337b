"""Notifications to a person. Each is stored, whether or not it could be delivered."""

import asyncio
import time
from dataclasses import dataclass

import sqlalchemy as sa

from gametape.desk.database import insert_once, notices
from gametape.desk.delivery import DeliveryChannel, DeliveryError

_FIELDS = (notices.c.key, notices.c.origin, notices.c.title, notices.c.text, notices.c.at, notices.c.problem)


@dataclass(frozen=True)
class Notification:
    key: str
    origin: str
    """The goal, thread or heartbeat that sent it."""
    title: str
    text: str
    at: float
    problem: str
    """Why the last attempt to deliver it failed."""


class NotificationStore:
    def __init__(self, database: sa.Engine, channel: DeliveryChannel) -> None:
        self._database, self._channel = database, channel

    async def notify(self, key: str, origin: str, title: str, text: str = "", local_only: bool = False) -> None:
        """Store a notification, exactly once by its key, and deliver it, at least once with the key in it. One that
        cannot be delivered now is tried again by `retry`; nothing is raised, because the job goes on either way."""
        values = {"key": key, "origin": origin, "title": title, "text": text, "local_only": local_only}
        await asyncio.to_thread(self._store, values)
        await self.retry(key)

    async def retry(self, key: str | None = None) -> None:
        """Deliver what is not delivered yet, if there is a channel."""
        if not self._channel:
            return
        for item, local_only in await asyncio.to_thread(self._undelivered, key):
            payload = {"origin": item.origin, "title": item.title, "text": item.text, "at": item.at}
            try:
                await self._channel.deliver(item.key, payload, local_only)
            except DeliveryError as error:
                await asyncio.to_thread(self._update, item.key, {"problem": str(error)})
            else:
                await asyncio.to_thread(self._update, item.key, {"delivered": time.time(), "problem": ""})

    def since(self, moment: float, limit: int = 100) -> list[Notification]:
        """The latest ones, oldest first."""
        query = sa.select(*_FIELDS).where(notices.c.at > moment).order_by(notices.c.at.desc()).limit(limit)
        with self._database.connect() as connection:
            return [Notification(*row) for row in reversed(connection.execute(query).all())]

    def _store(self, values: dict[str, object]) -> None:
        with self._database.begin() as connection:
            insert_once(connection, notices, {**values, "at": time.time(), "problem": ""})

    def _undelivered(self, key: str | None) -> list[tuple[Notification, bool]]:
        query = sa.select(*_FIELDS, notices.c.local_only).where(notices.c.delivered.is_(None)).order_by(notices.c.at)
        if key is not None:
            query = query.where(notices.c.key == key)
        with self._database.connect() as connection:
            return [(Notification(*row[:-1]), row[-1]) for row in connection.execute(query)]

    def _update(self, key: str, values: dict[str, object]) -> None:
        with self._database.begin() as connection:
            connection.execute(sa.update(notices).where(notices.c.key == key).values(**values))
