"""The worker's view of the test process: reading its stand-ins, making stand-ins for the worker's own objects, and
calling its functions back."""

from __future__ import annotations

import contextlib
import itertools
import threading
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

from . import wire_protocol as words
from .wire import Unsendable, WireError, decode, encode
from .wire_channel import WireChannel
from .wire_errors import error_class, error_name
from .wire_functions import FUNCTIONS, build_signature
from .worker_objects import ObjectTable

_MOST_CAUSES = 4
_MORE_ATTRIBUTES = ("name", "path")
_BUILTINS = (int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, types.MappingProxyType)


class WorkerPeer:
    """The test process at the other end of the worker's channel."""

    def __init__(
        self, channel: WireChannel, objects: ObjectTable, handle: Callable[[tuple[Any, ...], list[Any]], None]
    ) -> None:
        self._channel = channel
        self._objects = objects
        self._handle = handle
        self._stubs: dict[int, Callable[..., Any]] = {}
        self._callbacks: dict[int, int] = {}
        self._errors: dict[int, tuple[BaseException, int]] = {}
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

    def send(self, answer: bytes) -> None:
        """Send an answer, after a running callback of another thread has ended."""
        if not self._calls:
            self._errors.clear()
        with self._turn:
            self._channel.send(answer)

    def call_back(self, callback: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a function of the test process; it may make requests of its own before it answers."""
        with self._turn:
            if not self._calls:
                raise RuntimeError("split mode: a function of the test can only be called during a call by the test")
            number = next(self._ids)
            try:
                body = encode((words.CALLBACK, number, callback, args, kwargs), self.extend)
            except Unsendable as error:
                raise TypeError(f"split mode: an argument of a callback: {error}") from None
            self._channel.send(body)
            while True:
                mutables: list[Any] = []
                message = decode(self._channel.receive(), self.understand, mutables)
                if message[0] == words.REQUEST:
                    self._handle(message, mutables)
                elif message[0] == words.RETURN:
                    return message[2]
                else:
                    raise message[2]

    def understand(self, kind: int, payload: Any) -> Any:
        """The object that a stand-in of the test process represents."""
        if kind == words.MINE:
            return self._objects[payload]
        if kind == words.CLASS:
            return error_class(payload) if isinstance(payload, str) else self._objects[payload]
        if kind == words.FUNCTION_OF_TEST:
            return self._stub(*payload)
        if kind == words.ERROR_OF_TEST:
            return self._error(*payload)
        if kind == words.ITERATOR_OF_TEST:
            return self._pulled(payload)
        raise WireError(f"an unknown kind of stand-in, {kind}")

    def _pulled(self, callback: int) -> Iterator[Any]:
        """An iterator of the test; each element is fetched when it is needed."""
        while True:
            try:
                element = self.call_back(callback, (), {})
            except StopIteration:
                return
            yield element

    def _stub(self, callback: int, name: str, qualname: str, doc: str | None, signature: Any) -> Callable[..., Any]:
        if callback in self._stubs:
            return self._stubs[callback]

        def stub(*args: Any, **kwargs: Any) -> Any:
            return self.call_back(callback, args, kwargs)

        stub.__name__, stub.__qualname__, stub.__doc__, stub.__module__ = name, qualname, doc, "tests"
        if signature is not None:
            stub.__signature__ = build_signature(signature)  # type: ignore[attr-defined]
        self._stubs[callback] = stub
        self._callbacks[id(stub)] = callback
        return stub

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
        if isinstance(value, type):
            return words.CLASS, objects.class_reference(value)
        if isinstance(value, BaseException):
            if id(value) in self._errors:
                return words.YOUR_ERROR, self._errors[id(value)][1]
            return words.ERROR, self.error_fields(value)
        if objects.is_declared(type(value)):
            return words.HANDLE, (objects.number(value), objects.number(type(value)))
        if id(value) in self._callbacks:
            return words.YOURS, self._callbacks[id(value)]
        return self._by_behaviour(value)

    def _by_behaviour(self, value: Any) -> tuple[int, Any] | None:
        """Stand-ins of objects that the test process uses by one or two operations only."""
        kind = type(value)
        if isinstance(value, FUNCTIONS):
            return words.FUNCTION, self._function_fields(value)
        if isinstance(value, types.ModuleType):
            return words.MODULE, value.__name__
        if isinstance(typing.get_origin(value), type):
            return self.extend(typing.get_origin(value))
        if issubclass(kind, _BUILTINS):
            return None
        for wanted, names in (
            (words.AWAITABLE, ("__await__",)),
            (words.ITERATOR, ("__iter__", "__next__")),
            (words.ASYNC_ITERATOR, ("__aiter__", "__anext__")),
            (words.CONTEXT, ("__enter__", "__exit__")),
        ):
            if all(hasattr(kind, name) for name in names):
                return wanted, self._objects.number(value)
        return (words.FUNCTION, self._function_fields(value)) if callable(value) else None

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
        args = args if self._sends(args) else (text,)
        cause = error.__cause__
        cause_fields = self.error_fields(cause, causes - 1) if cause is not None and causes else None
        if name is None and not isinstance(error, Exception) and type(error).__module__ in ("builtins", "asyncio"):
            name = "RemoteExit"
            args = (f"the call ended with {type(error).__name__}({text})",)
        if name is not None:
            return name, args, None, text, cause_fields, self._attributes(error)
        return self._objects.number(type(error)), args, self._objects.number(error), text, cause_fields, {}

    def _attributes(self, error: BaseException) -> dict[str, Any]:
        """The attributes of an exception of a known class beside its arguments."""
        names = {*vars(error), *(_MORE_ATTRIBUTES if isinstance(error, (ImportError, NameError)) else ())}
        values = {name: getattr(error, name, None) for name in sorted(names) if not name.startswith("_")}
        return {name: value for name, value in values.items() if self._sends(value)}

    def _sends(self, value: Any) -> bool:
        try:
            encode(value, self.extend)
        except Unsendable:
            return False
        return True


def _arguments(error: BaseException) -> tuple[Any, ...]:
    """The arguments that build the same exception: some classes need more than `args` holds."""
    reduced = error.__reduce__()
    return reduced[1] if isinstance(reduced, tuple) and isinstance(reduced[1], tuple) else error.args
