"""The worker's view of the test process: reading its stand-ins, making stand-ins for the worker's own objects, and
calling its functions back."""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import itertools
import logging
import threading
import types
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from . import wire_protocol as words
from .wire import Unsendable, WireError, decode, encode
from .wire_bases import data_base
from .wire_channel import WireChannel
from .wire_errors import error_class, error_name
from .wire_functions import FUNCTIONS, build_signature
from .worker_loop import WorkerLoop
from .worker_mirrors import MirrorTable
from .worker_objects import ObjectTable, Unbound
from .worker_test_objects import TestObjectTable, named_in_library

_MOST_CAUSES = 4
_LIBRARIES = ("builtins", "asyncio", "asyncio.exceptions")
_DESCRIPTORS = (property, functools.cached_property, types.MemberDescriptorType, types.GetSetDescriptorType)
_EXITS = ("SystemExit", "CancelledError")
_MORE_ATTRIBUTES = ("name", "path")
_BEHAVIOURS = frozenset({"builtins", "itertools", "contextlib", "asyncio", "_asyncio", "_collections_abc"})
"""Modules of iterators, awaitables and context managers that have no further use."""
_OPERATIONS = (
    (words.AWAITABLE, ("__await__",)),
    (words.ITERATOR, ("__iter__", "__next__")),
    (words.ASYNC_ITERATOR, ("__aiter__", "__anext__")),
    (words.CONTEXT, ("__enter__", "__exit__")),
)
_BUILTINS = (int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, types.MappingProxyType)


class WorkerPeer:
    """The test process at the other end of the worker's channel."""

    def __init__(
        self,
        channel: WireChannel,
        objects: ObjectTable,
        handle: Callable[[tuple[Any, ...], list[Any]], None],
        loop: WorkerLoop,
    ) -> None:
        self._channel = channel
        self._objects = objects
        self.mirrors = MirrorTable(objects)
        self._of_test = TestObjectTable(self.call_back)
        self._handle = handle
        self._stubs: dict[int, Callable[..., Any]] = {}
        self._callbacks: dict[int, int] = {}
        self._errors: dict[int, tuple[BaseException, int]] = {}
        self._understood: dict[int, Callable[[Any], Any]] = {
            words.MINE: lambda number: self._objects[number],
            words.CLASS: self._class,
            words.FUNCTION_OF_TEST: lambda fields: self._stub(*fields),
            words.ERROR_OF_TEST: lambda fields: self._error(*fields),
            words.ITERATOR_OF_TEST: self._pulled,
            words.OBJECT_OF_TEST: lambda fields: self._of_test.object(*fields),
            words.CLASS_OF_TEST: self._of_test.stand_in_class,
            words.NAMED_OF_TEST: lambda fields: self._named(*fields),
            words.ASYNC_FUNCTION_OF_TEST: lambda fields: self._async_stub(*fields),
            words.ASYNC_ITERATOR_OF_TEST: self._pulled_later,
            words.AWAITABLE_OF_TEST: lambda fields: loop.future(*fields),
            words.DESCRIPTOR_OF_TEST: lambda fields: getattr(builtins, fields[0])(*fields[1]),
            words.LOGGER: logging.getLogger,
            words.MODULE: importlib.import_module,
        }
        self._ids = itertools.count()
        self._turn = threading.RLock()
        self._calls = 0

    @contextlib.contextmanager
    def during_a_call(self) -> Iterator[None]:
        """While a call runs, the test process answers callbacks."""
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    def send(self, answer: bytes, at_once: bool = True) -> None:
        """Send an answer, after a running callback of another thread has ended; one that is not sent `at_once` goes
        with those to the requests that have come already."""
        if not self._calls:
            self._errors.clear()
            self._of_test.forget_contents()
        with self._turn:
            (self._channel.send if at_once else self._channel.hold)(answer)

    def call_back(self, callback: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a function of the test process; it may make requests of its own before it answers."""
        with self._turn:
            if not self._calls:
                raise RuntimeError("split mode: a function of the test can only be called during a call by the test")
            number = next(self._ids)
            try:
                containers: list[Any] = []
                body = self.encode((words.CALLBACK, number, callback, args, kwargs), containers)
            except Unsendable as error:
                raise TypeError(f"split mode: an argument of a callback: {error}") from None
            self._channel.send(body)
            while True:
                message, mutables = self.read(self._channel.receive())
                if message[0] == words.REQUEST:
                    self._handle(message, mutables)
                    continue
                for position, contents in message[3]:
                    _replace(containers[position], contents)
                if message[0] == words.RETURN:
                    return message[2]
                raise message[2]

    def encode(self, message: Any, mutables: list[Any] | None = None) -> bytes:
        """The frame of a message. Raises Unsendable for one that cannot cross."""
        self.mirrors.begin_frame()
        return encode(message, self.extend, mutables)

    def changed(self) -> tuple[tuple[Any, ...], ...]:
        """The containers that changed and that the test process knows, beside the arguments of a call."""
        return *self.mirrors.changed(), *self._of_test.changed()

    def read(self, body: bytes) -> tuple[tuple[Any, ...], list[Any]]:
        """A message of the test process, and its mutable containers. A request that names an object that is not there
        becomes a request for that object, which is answered as such a request is."""
        mutables: list[Any] = []
        try:
            message = decode(body, self.understand, mutables)
            return message, mutables
        except Unbound as error:
            kind, number, *_ = decode(body, lambda _kind, _payload: object())
            if kind != words.REQUEST:
                raise
            return (words.REQUEST, number, words.GET, (error.number, ""), ()), []

    def understand(self, kind: int, payload: Any) -> Any:
        """The object that a stand-in of the test process represents."""
        if kind not in self._understood:
            raise WireError(f"an unknown kind of stand-in, {kind}")
        return self._understood[kind](payload)

    def _class(self, payload: Any) -> Any:
        return error_class(payload) if isinstance(payload, str) else self._objects[payload]

    def _named(self, callback: int, name: str) -> Any:
        named = named_in_library(name)
        self._callbacks[id(named)] = callback
        return named

    def _pulled(self, callback: int) -> Iterator[Any]:
        """An iterator of the test; each element is fetched when it is needed."""
        while True:
            try:
                element = self.call_back(callback, (), {})
            except StopIteration:
                return
            yield element

    async def _pulled_later(self, callback: int) -> AsyncIterator[Any]:
        """An asynchronous iterator of the test."""
        while True:
            try:
                element = await self.call_back(callback, (), {})
            except StopAsyncIteration:
                return
            yield element

    def _async_stub(
        self, callback: int, name: str, qualname: str, doc: str | None, signature: Any
    ) -> Callable[..., Any]:
        if callback in self._stubs:
            return self._stubs[callback]

        async def stub(*args: Any, **kwargs: Any) -> Any:
            return await self.call_back(callback, args, kwargs)

        return self._described(stub, callback, name, qualname, doc, signature)

    def _stub(self, callback: int, name: str, qualname: str, doc: str | None, signature: Any) -> Callable[..., Any]:
        if callback in self._stubs:
            return self._stubs[callback]

        def stub(*args: Any, **kwargs: Any) -> Any:
            return self.call_back(callback, args, kwargs)

        return self._described(stub, callback, name, qualname, doc, signature)

    def _described(
        self, stub: Any, callback: int, name: str, qualname: str, doc: str | None, signature: Any
    ) -> Callable[..., Any]:
        stub.__name__, stub.__qualname__, stub.__doc__, stub.__module__ = name, qualname, doc, "tests"
        if signature is not None:
            stub.__signature__ = build_signature(signature)
        self._stubs[callback] = stub
        self._callbacks[id(stub)] = callback
        return stub  # type: ignore[no-any-return]

    def _error(self, reference: Any, args: tuple[Any, ...], number: int | None, origin: int) -> BaseException:
        if number is not None:
            error: BaseException = self._objects[number]
        else:
            kind: Any = error_class(reference) if isinstance(reference, str) else self._objects[reference]
            try:
                error = kind(*args)
            except Exception:
                error = kind.__new__(kind)
                error.args = args
        self._errors[id(error)] = error, origin
        return error

    def extend(self, value: Any) -> tuple[int, Any] | None:
        """The stand-in of a value that is not plain data; None where it has none."""
        objects = self._objects
        yours = self._callbacks.get(id(value), self._of_test.number(value))
        if yours is not None:
            return words.YOURS, yours
        if isinstance(value, type):
            return words.CLASS, objects.class_reference(value)
        if isinstance(value, BaseException):
            if id(value) in self._errors:
                return words.YOUR_ERROR, self._errors[id(value)][1]
            return words.ERROR, self.error_fields(value)
        if objects.could_be_declared(type(value)) and objects.is_declared(type(value)):
            return self.mirrors.handle(value)
        return self._by_behaviour(value)

    def _by_behaviour(self, value: Any) -> tuple[int, Any] | None:
        """Stand-ins of objects of no declared class, which the test process uses by one or two operations only if they
        are of a kind that every Python has, or of a class that the task could have declared."""
        kind = type(value)
        if isinstance(value, FUNCTIONS):
            return words.FUNCTION, self._function_fields(value)
        if isinstance(value, (types.ModuleType, logging.Logger)):
            return (words.LOGGER, value.name) if isinstance(value, logging.Logger) else (words.MODULE, value.__name__)
        if isinstance(typing.get_origin(value), type):
            return self.extend(typing.get_origin(value))
        if not self._objects.could_be_declared(kind) and _stays_whole(kind):
            return self.mirrors.handle(value)
        return self._of_known_kind(value)

    def _of_known_kind(self, value: Any) -> tuple[int, Any] | None:
        kind = type(value)
        if issubclass(kind, _BUILTINS):
            return None
        for wanted, names in _OPERATIONS:
            if all(hasattr(kind, name) for name in names):
                return wanted, self._objects.number(value)
        if callable(value) or kind in _DESCRIPTORS:
            return words.FUNCTION, self._function_fields(value)
        return None if self._objects.could_be_declared(kind) else self.mirrors.handle(value)

    def _function_fields(self, function: Any) -> tuple[Any, ...]:
        texts = (getattr(function, name, None) for name in ("__name__", "__qualname__", "__module__", "__doc__"))
        return self._objects.number(function), *(text if isinstance(text, str) else None for text in texts)

    def error_fields(self, error: BaseException, causes: int = _MOST_CAUSES) -> tuple[Any, ...]:
        """An exception's class, arguments, number, text and cause. A class that both sides know has no number."""
        try:
            text = str(error)
        except Exception as failure:
            text = f"{type(error).__name__}, whose text raises {type(failure).__name__}"
        name = error_name(type(error))
        args = error.args if name is None else _arguments(error)
        args = args if self.crosses(args) else (text,)
        cause = error.__cause__
        cause_fields = self.error_fields(cause, causes - 1) if cause is not None and causes else None
        if name is None and not isinstance(error, Exception) and type(error).__module__ in _LIBRARIES:
            name = type(error).__name__ if type(error).__name__ in _EXITS else "RemoteExit"
            args = args if name != "RemoteExit" else (f"the call ended with {type(error).__name__}({text})",)
        if name is not None:
            return name, args, None, text, cause_fields, self._attributes(error)
        return self._objects.number(type(error)), args, self._objects.number(error), text, cause_fields, {}

    def _attributes(self, error: BaseException) -> dict[str, Any]:
        """The attributes of an exception of a known class beside its arguments."""
        names = {*vars(error), *(_MORE_ATTRIBUTES if isinstance(error, (ImportError, NameError)) else ())}
        values = {name: getattr(error, name, None) for name in sorted(names) if not name.startswith("_")}
        return {name: value for name, value in values.items() if self.crosses(value)}

    def crosses(self, value: Any) -> bool:
        try:
            with self._objects.trial():
                self.encode(value)
        except Unsendable:
            return False
        return True


def _replace(container: Any, contents: Any) -> None:
    base = data_base(type(container))
    if base is not None and base.replace is not None:
        base.replace(container, contents)


def _stays_whole(kind: type) -> bool:
    """Whether objects of a class that no task could declare are handles: all but those of the library that have no
    further use than to be iterated over, awaited, entered or called."""
    return kind is not types.MappingProxyType and kind.__module__ not in _BEHAVIOURS


def _arguments(error: BaseException) -> tuple[Any, ...]:
    """The arguments that build the same exception: some classes need more than `args` holds."""
    reduced = error.__reduce__()
    return reduced[1] if isinstance(reduced, tuple) and isinstance(reduced[1], tuple) else error.args
