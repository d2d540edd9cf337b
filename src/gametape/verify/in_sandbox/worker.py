"""The worker: runs the agent's code and answers the test process.

The worker shares a process with hostile code and is not trusted; it only has to serve honest code well. It imports
modules on request, runs every call in the main thread, one at a time, and always answers: an exception of any kind is
an answer, output is collected up to a limit and sent along, and the recursion limit is reset after each call. If the
code ends the process or takes the socket, the test process sees a closed connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import importlib
import io
import operator
import os
import socket
import sys
import types
from collections.abc import Callable
from typing import Any

from . import wire_protocol as words
from .wire import Unsendable, WireError, decode, encode
from .wire_channel import WireChannel
from .wire_functions import signature_fields
from .worker_objects import ObjectTable
from .worker_peer import WorkerPeer


def _contents(container: Any) -> Any:
    if type(container) is dict:
        return [part for pair in container.items() for part in pair]
    return bytes(container) if type(container) is bytearray else list(container)


def _same(before: Any, after: Any) -> bool:
    if type(before) is bytes:
        return bool(before == after)
    return len(before) == len(after) and all(map(operator.is_, before, after))


class ArgumentChanges:
    """Finds the arguments that a call changed in place.

    It keeps a shallow copy of every mutable container of a request and compares by identity after the call; a container
    within a container has its own copy.
    """

    def __init__(self, containers: list[Any]) -> None:
        self._containers = containers
        self._before = [_contents(container) for container in containers]

    def position(self, value: Any) -> int | None:
        """The position of the container, if it is one of them."""
        for position, container in enumerate(self._containers):
            if container is value:
                return position
        return None

    def updates(self) -> tuple[tuple[int, Any], ...]:
        """The changed containers, each with its position."""
        return tuple(
            (position, container)
            for position, (container, before) in enumerate(zip(self._containers, self._before, strict=True))
            if not _same(before, _contents(container))
        )


_MOST_OUTPUT = 1 << 20
_CLASS_OPERATORS: dict[str, Callable[..., Any]] = {
    "getitem": operator.getitem,
    "contains": operator.contains,
    "len": len,
    "iter": iter,
    "dir": dir,
}


def serve(sock: socket.socket) -> None:
    """Answer requests until the test process closes the connection."""
    with contextlib.suppress(WireError, KeyboardInterrupt):
        SplitWorker(WireChannel(sock)).serve()


class _Output(io.BytesIO):
    """What the code prints, up to a limit; the rest is dropped."""

    def write(self, data: Any) -> int:
        size = len(data)
        if self.tell() + size <= _MOST_OUTPUT:
            super().write(data)
        return size


class SplitWorker:
    """Carries out the requests of one test process."""

    def __init__(self, channel: WireChannel) -> None:
        self._channel = channel
        self._objects = ObjectTable()
        self._peer = WorkerPeer(channel, self._objects, self._handle)
        self._modules: frozenset[str] = frozenset()
        self._recursion = sys.getrecursionlimit()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._outputs = (_Output(), _Output())
        self._operations: dict[int, Callable[..., Any]] = {
            words.HELLO: self._hello,
            words.IMPORT: self._import,
            words.MODULE_ATTRIBUTE: self._module_attribute,
            words.MODULE_NAMES: self._module_names,
            words.CALL: lambda number, args, kwargs: self._objects[number](*args, **kwargs or {}),
            words.METHOD: lambda number, name, args, kwargs: getattr(self._objects[number], name)(
                *args, **kwargs or {}
            ),
            words.GET: lambda number, name: getattr(self._objects[number], name),
            words.SET: lambda number, name, value: setattr(self._objects[number], name, value),
            words.DELETE: lambda number, name: delattr(self._objects[number], name),
            words.SPECIAL: self._special,
            words.EQUALS: self._equals,
            words.DESCRIBE: lambda number: self._objects.describe(self._objects[number]),
            words.NEXT: lambda number: next(self._objects[number]),
            words.AWAIT: self._await,
            words.MAKE_ERROR: lambda number, args, kwargs: self._peer.error_fields(
                self._objects[number](*args, **kwargs or {})
            ),
            words.SIGNATURE: lambda number: signature_fields(self._objects[number]),
            words.OF_CLASS: lambda number, name, args: _CLASS_OPERATORS[name](self._objects[number], *args),
            words.EXIT: self._exit,
            words.COPY: lambda number, deep: (copy.deepcopy if deep else copy.copy)(self._objects[number]),
        }

    def serve(self) -> None:
        self._redirect()
        while True:
            mutables: list[Any] = []
            self._handle(decode(self._channel.receive(), self._peer.understand, mutables), mutables)

    def _redirect(self) -> None:
        """Point the standard descriptors to nowhere, and collect what the code prints."""
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(null, descriptor)
        sys.stdin = io.TextIOWrapper(io.BytesIO())
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(output, "utf-8", "surrogateescape", write_through=True) for output in self._outputs
        )

    def _handle(self, request: tuple[Any, ...], mutables: list[Any]) -> None:
        """Carry out one request and answer it."""
        _, number, operation, fields, releases = request
        for released, count in releases:
            self._objects.release(released, count)
        changes = ArgumentChanges(mutables)
        with self._peer.during_a_call():
            answer = self._run(number, operation, fields, changes)
        self._peer.send(answer)

    def _run(self, number: int, operation: int, fields: tuple[Any, ...], changes: ArgumentChanges) -> bytes:
        try:
            try:
                value = self._operations[operation](*fields)
            finally:
                with contextlib.suppress(RecursionError):
                    sys.setrecursionlimit(self._recursion)
            same = changes.position(value)
            head = (words.RETURN, number, value) if same is None else (words.SAME, number, same)
            return self._answer(head, changes)
        except BaseException as error:
            raised = error.with_traceback(None)
        try:
            return self._answer((words.RAISE, number, raised), changes)
        except BaseException as error:
            plain = TypeError(f"{type(raised).__name__}, with something that is not plain data: {error}")
            return self._answer((words.RAISE, number, plain), ArgumentChanges([]))

    def _answer(self, head: tuple[Any, ...], changes: ArgumentChanges) -> bytes:
        try:
            return encode((*head, changes.updates(), self._printed()), self._peer.extend)
        except Unsendable as error:
            raise TypeError(f"split mode: {error}; declare its class in the task, or use shared mode") from None

    def _printed(self) -> tuple[str, ...] | None:
        if not any(output.tell() for output in self._outputs):
            return None
        texts = tuple(output.getvalue().decode("utf-8", "replace") for output in self._outputs)
        for output in self._outputs:
            output.seek(0)
            output.truncate()
        return texts

    def _hello(self, roots: tuple[str, ...], modules: tuple[str, ...], classes: tuple[str, ...]) -> None:
        sys.path[:0] = [root for root in roots if root not in sys.path]
        self._modules = frozenset(modules)
        self._objects.declared = frozenset(classes)

    def _import(self, name: str) -> tuple[str | None, bool]:
        module = importlib.import_module(name)
        return module.__doc__, hasattr(module, "__path__")

    def _module_attribute(self, name: str, attribute: str) -> Any:
        value = getattr(importlib.import_module(name), attribute)
        if isinstance(value, types.ModuleType) and value.__name__ not in self._modules:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r} that split mode could show")
        return value

    def _module_names(self, name: str) -> tuple[list[str], list[str]]:
        """All names, and those that a star import takes, as far as they can cross."""
        module = importlib.import_module(name)
        public = getattr(module, "__all__", [attribute for attribute in dir(module) if not attribute.startswith("_")])
        missing = [attribute for attribute in public if not hasattr(module, attribute)]
        crossing = [attribute for attribute in public if self._crosses(getattr(module, attribute, None))]
        return dir(module), missing + crossing

    def _crosses(self, value: Any) -> bool:
        if isinstance(value, types.ModuleType):
            return value.__name__ in self._modules
        try:
            encode(value, self._peer.extend)
        except Unsendable:
            return False
        return True

    def _special(self, number: int, name: str, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        target = self._objects[number]
        return getattr(type(target), name)(target, *args, **kwargs or {})

    def _equals(self, number: int, candidates: tuple[Any, ...]) -> list[tuple[bool, Any]]:
        """For each candidate whether the comparison raised, and its result or exception."""
        target: Any = self._objects[number]
        equal: Any = type(target).__eq__
        outcomes: list[tuple[bool, Any]] = []
        for candidate in candidates:
            try:
                outcomes.append((False, equal(target, candidate)))
            except Exception as error:
                outcomes.append((True, error))
        return outcomes

    def _await(self, number: int) -> Any:
        """One loop for the whole life of the worker, so that locks and queues of the code stay usable."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
        awaitable = self._objects[number]

        async def waited() -> Any:
            return await awaitable

        return self._loop.run_until_complete(waited())

    def _exit(self, number: int, name: str, error: BaseException | None) -> Any:
        target = self._objects[number]
        result = getattr(type(target), name)(target, None if error is None else type(error), error, None)
        return bool(result) if name == "__exit__" else result
