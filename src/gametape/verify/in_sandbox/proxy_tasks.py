"""Coroutines across the border, on the trusted side: those of the code as the test awaits them, and the test's own.

The worker runs a coroutine of the code as far as it comes without waiting. The test then sleeps in its own loop until
the time that the worker named, or until it made another request, and lets the worker go on. A coroutine of the test
that the code awaits runs as a task of the test's loop, and its result is sent.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from typing import TYPE_CHECKING, Any

from . import wire_protocol as words
from .wire import WireError

__tracebackhide__ = True  # a failed test shows the test, not these frames

if TYPE_CHECKING:
    from .proxy_session import ProxySession

_SLICE = 0.002
_LONGEST = 3600.0


def running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class RemoteTasks:
    """The coroutines of one session."""

    def __init__(self, session: ProxySession) -> None:
        self._session = session
        self._numbers = itertools.count()
        self._loops = itertools.count(1)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serial = 0
        self._progress = 0
        self._running: set[asyncio.Task[Any]] = set()

    def serial(self) -> int:
        """The number of the loop that runs now; 0 for none."""
        loop = running_loop()
        if loop is None:
            return 0
        if loop is not self._loop:
            self._loop, self._serial = loop, next(self._loops)
        return self._serial

    async def wait(self, awaitable: int) -> Any:
        """The result of an awaitable of the worker."""
        if running_loop() is None:
            return self._session.ask(words.AWAIT, awaitable)
        self._progress += 1
        state, value = self._checked(self._session.ask(words.START, awaitable))
        while state == "waits":
            task, now, when, may_wake = value
            try:
                until = await self._pause(now, when, may_wake)
            except asyncio.CancelledError:
                self._session.ask(words.CANCEL, task)
                raise
            state, value = self._checked(self._session.ask(words.CONTINUE, task, until))
        self._progress += 1
        return value

    def note_request(self) -> None:
        """A request of another kind may let a coroutine go on."""
        self._progress += 1

    async def _pause(self, now: float, when: float | None, may_wake: bool) -> float:
        loop = asyncio.get_running_loop()
        seen, began = self._progress, loop.time()
        end = began + (math.inf if when is None else min(when - now, _LONGEST))
        while True:
            left = end - loop.time()
            if left <= 0:
                return now if when is None else when
            await asyncio.sleep(min(left, _SLICE))
            if may_wake:
                return now + loop.time() - began
            if self._progress != seen:
                return now

    def _checked(self, answer: Any) -> tuple[str, Any]:
        if type(answer) is tuple and len(answer) == 2:
            state, value = answer
            if state == "done":
                return state, value
            if state == "waits" and type(value) is tuple and tuple(map(type, value[:2])) == (int, float):
                _, _, when, may_wake = value
                if type(may_wake) is bool and (when is None or (type(when) is float and math.isfinite(when))):
                    return state, value
        raise self._session.end(WireError("a coroutine that is none"))

    def give(self, coroutine: Any) -> tuple[int | None, Any]:
        """The number of a coroutine of the test, whose result is sent later; where no loop runs, its result."""
        if running_loop() is None:

            async def waited() -> Any:
                return await coroutine

            return None, asyncio.run(waited())
        number = next(self._numbers)
        task = asyncio.ensure_future(coroutine)
        self._running.add(task)
        task.add_done_callback(lambda done: self._settle(number, done))
        return number, None

    def _settle(self, number: int, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if task.cancelled():
            self._session.ask(words.SETTLE, number, True, RuntimeError("cancelled"))
            return
        error = task.exception()
        self._session.ask(words.SETTLE, number, error is not None, task.result() if error is None else error)
