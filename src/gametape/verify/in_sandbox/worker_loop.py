"""The event loop of the worker: coroutines of the code run as far as they come, and then wait for the test.

The loop has a clock of its own, which stands still while nothing runs. When nothing can run before a timer, the test
process sleeps until then, in its own loop, and says so: so the test's other tasks run meanwhile, its time limits hold,
and the same test makes the same requests each time.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import threading
from asyncio import events
from collections.abc import Iterator
from typing import Any

_IO_SECONDS = 0.005
_THREAD_SECONDS = 0.25
"""How long a request waits for a function that runs in a thread, so that a short one makes no difference."""


class _Selector(selectors.DefaultSelector):
    """Stops the loop instead of waiting."""

    loop: SteppedLoop

    def select(self, timeout: float | None = None) -> Any:
        waits = timeout is None or timeout > 0
        ready = super().select(self._patience(timeout) if waits else 0)
        if waits and not ready:
            self.loop.stop()
        return ready

    def _patience(self, timeout: float | None) -> float:
        if self.loop.in_threads and not self.loop.has_waited:
            self.loop.has_waited = True
            return _THREAD_SECONDS if timeout is None else min(timeout, _THREAD_SECONDS)
        return _IO_SECONDS if self.may_wake() else 0

    def may_wake(self) -> bool:
        """Whether something besides the test and a timer can let the loop go on: a file, or another thread."""
        own = 1
        return len(self.get_map()) > own or self.loop.in_threads > 0 or threading.active_count() > own


class SteppedLoop(asyncio.SelectorEventLoop):
    """A loop that ends as soon as it would wait."""

    def __init__(self) -> None:
        self.now = 0.0
        self.in_threads = 0
        """Functions that run in threads for a coroutine."""
        self.has_waited = False
        """Whether the current request has waited for them."""
        self.selector = _Selector()
        self.selector.loop = self
        super().__init__(self.selector)

    def time(self) -> float:
        return self.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        future: asyncio.Future[Any] = super().run_in_executor(executor, func, *args)
        self.in_threads += 1
        future.add_done_callback(self._left_thread)
        return future

    def _left_thread(self, _: asyncio.Future[Any]) -> None:
        self.in_threads -= 1
        self.has_waited = False

    def next_timer(self) -> float | None:
        timers = [handle.when() for handle in self._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]
        return min(timers, default=None)


class WorkerLoop:
    """The loop of the code, one for each loop of the test."""

    def __init__(self) -> None:
        self._loop: SteppedLoop | None = None
        self._serial = 0
        self._tasks: dict[int, asyncio.Task[Any]] = {}
        self._futures: dict[int, asyncio.Future[Any]] = {}

    def _current(self) -> SteppedLoop:
        if self._loop is None:
            self._loop = SteppedLoop()
        return self._loop

    def enter(self, serial: int) -> None:
        """The test runs in its loop of this number; 0 for none. The tasks of an earlier loop are gone."""
        if self._serial and serial != self._serial:
            self._loop = None
            self._tasks.clear()
            self._futures.clear()
        self._serial = serial

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Within a loop of the test, code that is not a coroutine finds a running loop too."""
        before = events._get_running_loop()
        if self._serial and before is None:
            events._set_running_loop(self._current())
        try:
            yield
        finally:
            events._set_running_loop(before)

    def start(self, awaitable: Any) -> tuple[str, Any]:
        async def waited() -> Any:
            return await awaitable

        self._current().has_waited = False
        number = len(self._tasks)
        task = self._tasks[number] = self._current().create_task(waited())
        return self._drive(number, task)

    def go_on(self, number: int, until: float) -> tuple[str, Any]:
        loop = self._current()
        loop.now = max(loop.now, until)
        return self._drive(number, self._tasks[number])

    def cancel(self, number: int) -> None:
        task = self._tasks[number]
        task.cancel()
        self._drive(number, task, quiet=True)

    def wait(self, awaitable: Any) -> Any:
        """Run an awaitable to its end, for a test without a loop."""
        state, value = self.start(awaitable)
        while state != "done":
            number, _, when, _ = value
            if when is None and not self._current().selector.may_wake():
                raise RuntimeError("split mode: the coroutine waits for something that does not come")
            state, value = self.go_on(number, when or 0.0)
        return value

    def _drive(self, number: int, task: asyncio.Task[Any], quiet: bool = False) -> tuple[str, Any]:
        loop = self._current()
        outer = events._get_running_loop()
        events._set_running_loop(None)
        try:
            if not task.done():
                task.add_done_callback(_stop)
                loop.run_forever()
        finally:
            task.remove_done_callback(_stop)
            events._set_running_loop(outer)
        if quiet:
            return "done", None
        if task.done():
            return "done", task.result()
        return "waits", (number, loop.now, loop.next_timer(), loop.selector.may_wake())

    def future(self, number: int | None, value: Any) -> Any:
        """The awaitable of the test with this number; without a number, one that is over."""
        if number is None:
            return _over(value)
        future = self._futures[number] = self._current().create_future()
        return future

    def settle(self, number: int, raised: bool, value: Any) -> None:
        future = self._futures.pop(number, None)
        if future is not None and not future.done():
            if raised:
                future.set_exception(value)
            else:
                future.set_result(value)


def _stop(task: asyncio.Future[Any]) -> None:
    task.get_loop().stop()


async def _over(value: Any) -> Any:
    return value
