"""Things done outside a workspace, each under a key that says which one it is."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

import sqlalchemy as sa

from gametape.desk.database import effects, insert_once
from gametape.desk.jobs import Json


class IdempotentEffects:
    """What was done already, by key."""

    def __init__(self, database: sa.Engine) -> None:
        self._database = database

    async def once(self, key: str, act: Callable[[], Awaitable[Json]]) -> Json:
        """The result of `act`, run unless it is known that it was.

        At least once: a kill between the end of `act` and its entry here runs it again. So `act` hands the key on to
        a receiver that knows it, or asks the receiver first whether it has seen the key.
        """
        known = await asyncio.to_thread(self._known, key)
        if known is not None:
            return json.loads(known)
        result = await act()
        await asyncio.to_thread(self._enter, key, json.dumps(result))
        return result

    def _known(self, key: str) -> str | None:
        with self._database.connect() as connection:
            return connection.scalar(sa.select(effects.c.result).where(effects.c.key == key))

    def _enter(self, key: str, result: str) -> None:
        with self._database.begin() as connection:
            insert_once(connection, effects, {"key": key, "result": result, "at": time.time()})
