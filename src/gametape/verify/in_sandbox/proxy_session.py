"""The connection to the worker, on the trusted side.

One request runs at a time. Meanwhile the worker may request callbacks, whose functions run here and may make requests
of their own. A message that no honest worker sends, or a call that takes longer than its seconds, ends the connection:
that call raises, and every later one raises at once.

Everything that the worker sends is data. It can raise only exceptions of `wire_errors`, of classes built here, and
those that a callback of the same call raised; it can call only functions that the test passed to it; it can change
only containers that were arguments of a function or method, and only into exact builtins of the same type.
"""

from __future__ import annotations

import itertools
import socket
import sys
import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

from . import wire_protocol as words
from .argument_changes import ArgumentChanges
from .proxy_errors import raisable
from .proxy_remotes import RemoteObject
from .proxy_surroundings import Surroundings
from .proxy_tasks import RemoteTasks
from .proxy_translator import ObjectTranslator
from .wire import WireError, decode, encode
from .wire_bases import data_base
from .wire_channel import WireChannel

__tracebackhide__ = True  # a failed test shows the test, not these frames

MOST_NESTED = 100
"""Calls within callbacks within calls."""


class CallTimeout(TimeoutError):
    """The worker did not answer in time."""


class ProxySession:
    """Sends requests to the worker. `ask` is the only way to it."""

    def __init__(
        self, sock: socket.socket, classes: tuple[str, ...] = (), seconds: float = 10.0, recorded: bool = False
    ) -> None:
        self.recorded = recorded
        """Whether the frames are kept, to be sent again: then they hold no decoys, and nothing is released."""
        self.stand_ins = ObjectTranslator(self, frozenset(classes))
        self._seconds = seconds
        self._channel = WireChannel(sock, seconds)
        self._turn = threading.RLock()
        self._ids = itertools.count()
        self._received: list[Any] = []
        self._nested = 0
        self._deadline = 0.0
        self._ended: Exception | None = None
        self._outcome: BaseException | None = None
        self._releases: list[tuple[int, int]] = []
        self.tasks = RemoteTasks(self)
        self.surroundings: Surroundings | None = None
        """What is told to the worker before a request, and done here after it, beside the request itself."""

    @property
    def lost(self) -> str | None:
        """Why the connection ended; None while it works."""
        return None if self._ended is None else str(self._ended)

    @property
    def timed_out(self) -> bool:
        return isinstance(self._ended, CallTimeout)

    def ask(self, operation: int, *fields: Any) -> Any:
        """Make a request: returns what the worker returns, raises what it raises. Raises Unsendable, with nothing
        sent, for fields that cannot cross."""
        if not self._turn.acquire(timeout=self._seconds):
            raise CallTimeout(f"another thread's call was not over after {self._seconds:g} seconds")
        try:
            if self._ended is not None:
                raise type(self._ended)(f"no answer any more, since: {self._ended}")
            if self._nested >= MOST_NESTED:
                raise RecursionError(f"more than {MOST_NESTED} calls within callbacks")
            if not self._nested:
                self._deadline = monotonic() + self._seconds
            self._nested += 1
            try:
                if self.surroundings is not None:
                    self.surroundings.before(fields)
                if operation not in (words.START, words.CONTINUE):
                    self.tasks.note_request()
                return self._exchange(operation, fields)
            finally:
                self._nested -= 1
                if not self._nested:
                    self.stand_ins.forget_errors()
        finally:
            self._turn.release()

    def release(self, number: int, count: int) -> None:
        """The test has dropped its last reference; the worker hears of it with the next request."""
        if not self.recorded:
            self._releases.append((number, count))

    def end(self, error: Exception) -> Exception:
        """End the connection. Returns the exception to raise."""
        if self._ended is None:
            self._ended = error
        return error

    def _exchange(self, operation: int, fields: tuple[Any, ...]) -> Any:
        releases, self._releases = self._releases, []
        number = next(self._ids)
        mutables: list[Any] = []
        try:
            body = encode((words.REQUEST, number, operation, fields, tuple(releases)), self.stand_ins.extend, mutables)
        except BaseException:
            self._releases += releases
            raise
        may_change = _may_change_arguments(operation, fields)
        if not may_change:
            mutables.clear()
        self._send(body)
        while True:
            message = self._receive()
            if message[0] == words.CALLBACK:
                self._call_back(message)
                continue
            kind, answered, value, updates, printed = message
            if answered != number or kind not in (words.RETURN, words.SAME, words.RAISE):
                raise self.end(WireError("an answer to something that was not asked"))
            self._update(mutables, updates, may_change)
            self._print(printed)
            self._raise_outcome()
            if kind == words.RETURN:
                return value
            if kind == words.SAME:
                return self._mutable(mutables, value)
            error = raisable(value)
            if error is None:
                raise self.end(WireError("raised something that is not an exception"))
            raise error

    def _send(self, body: bytes) -> None:
        self._guarded(lambda: self._channel.send(body))

    def _receive(self) -> tuple[Any, ...]:
        received: list[Any] = []
        message = self._guarded(lambda: decode(self._channel.receive(), self.stand_ins.understand, received))
        self._received = received
        if type(message) is not tuple or len(message) != 5 or type(message[0]) is not int:
            raise self.end(WireError("a message of no known form"))
        return message

    def _guarded(self, action: Callable[[], Any]) -> Any:
        try:
            result = action()
        except WireError as error:
            raise self.end(error) from None
        except TimeoutError:
            result = None
            self._deadline = 0.0
        if monotonic() > self._deadline:
            raise self.end(CallTimeout(f"the call was not over after {self._seconds:g} seconds"))
        return result

    def _call_back(self, message: tuple[Any, ...]) -> None:
        """Run a function of the test for the worker. An outcome of the test itself (a failure, a skip, an interrupt) is
        sent to the worker as an error and kept here, to be raised when the call is over, whatever the worker does."""
        _, number, callback, args, kwargs = message
        if type(args) is not tuple or type(kwargs) is not dict or any(type(key) is not str for key in kwargs):
            raise self.end(WireError("a callback with arguments that are none"))
        function = self.stand_ins.callback(callback)
        changes = ArgumentChanges(list(self._received))
        try:
            value = function(*args, **kwargs)
            body = encode((words.RETURN, number, value, changes.updates()), self.stand_ins.extend)
        except BaseException as error:
            if self._ended is not None:
                raise
            sent = error
            if not isinstance(error, Exception):
                self._outcome = error
                sent = RuntimeError("the test is over")
            body = encode((words.RAISE, number, sent, changes.updates()), self.stand_ins.extend)
        self._send(body)

    def _raise_outcome(self) -> None:
        outcome, self._outcome = self._outcome, None
        if outcome is not None:
            raise outcome

    def _mutable(self, mutables: list[Any], position: Any) -> Any:
        if type(position) is not int or not 0 <= position < len(mutables):
            raise self.end(WireError("an argument that was not there"))
        return mutables[position]

    def _update(self, mutables: list[Any], updates: Any, may_change: bool) -> None:
        if type(updates) is not tuple:
            raise self.end(WireError("updates that are none"))
        for update in updates:
            if type(update) is tuple and len(update) == 1 and isinstance(update[0], RemoteObject):
                continue  # reading the handle has updated it
            if type(update) is not tuple or len(update) != 2:
                raise self.end(WireError("updates that are none"))
            position, contents = update
            lent = may_change and self.stand_ins.is_lent(position)
            container = position if lent else self._mutable(mutables, position)
            base = data_base(type(container))
            if base is None or base.replace is None or type(contents) is not base.plain:
                raise self.end(WireError("an argument that became something else"))
            base.replace(container, contents)

    def _print(self, printed: Any) -> None:
        """Write what the code printed to the output of the test process, so that a test can capture it, and do here
        what else it did that the test can see."""
        if printed is None:
            return
        if (
            type(printed) is not tuple
            or len(printed) not in (2, 3)
            or any(type(text) is not str for text in printed[:2])
        ):
            raise self.end(WireError("output that is no text"))
        for stream, text in zip((sys.stdout, sys.stderr), printed, strict=False):
            if text:
                stream.write(text.encode("utf-8", "replace").decode())
        if len(printed) == 3:
            if self.surroundings is None:
                raise self.end(WireError("effects where nothing is shared"))
            self.surroundings.happen(printed[2])


def _may_change_arguments(operation: int, fields: tuple[Any, ...]) -> bool:
    """Whether a request may change its arguments. A comparison or operator could change the expected value."""
    if operation == words.SPECIAL:
        return fields[1] not in words.COMPARISONS | words.BINARY | {"__eq__", "__contains__"}
    return operation in (words.CALL, words.METHOD, words.MAKE_ERROR)
