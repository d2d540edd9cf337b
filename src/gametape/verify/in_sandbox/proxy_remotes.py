"""Stand-ins in the test process for functions, iterators, awaitables and context managers of the worker.

Each supports the operations of its kind and no others. Equality and hash are by identity of the stand-in.
"""

from __future__ import annotations

import dis
import inspect
import os
import sys
import types
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from . import wire_protocol as words
from .wire_bases import DataBase
from .wire_functions import build_signature

__tracebackhide__ = True  # a failed test shows the test, not these frames

if TYPE_CHECKING:
    from .proxy_session import ProxySession

_R = TypeVar("_R", bound="RemoteObject")
_RAISE = dis.opmap["RAISE_VARARGS"]

_OF_CODE = frozenset(
    {"__code__", "__globals__", "__closure__", "__builtins__", "__func__", "__self__", "_is_coroutine"}
)
_MEMORY = frozenset({"__cuda_array_interface__", "__dlpack__", "__dlpack_device__", "__buffer__", "__release_buffer__"})


class RemoteObject:
    """An object of the worker, by its number. The worker keeps the object while this stand-in is alive.

    It has no slots, so that a class can derive from it and from a builtin type.
    """

    if TYPE_CHECKING:
        _gametape_count: int
        _gametape_number: int
        _gametape_session: ProxySession
        _gametape_without_truth: bool

    @staticmethod
    def make(kind: type[_R], session: ProxySession, number: int, base: DataBase | None = None, data: Any = None) -> _R:
        remote: _R = object.__new__(kind) if base is None else base.make(kind, data)
        for name, value in (("session", session), ("number", number), ("count", 1), ("without_truth", False)):
            object.__setattr__(remote, f"_gametape_{name}", value)
        return remote

    @staticmethod
    def count_again(remote: RemoteObject) -> None:
        object.__setattr__(remote, "_gametape_count", remote._gametape_count + 1)

    @staticmethod
    def number(remote: RemoteObject) -> int:
        return remote._gametape_number

    def __del__(self) -> None:
        self._gametape_session.release(self._gametape_number, self._gametape_count)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if sys._getframe(1).f_globals.get("__name__", "").startswith("multiprocessing"):
            raise TypeError("split mode: an object of the code under test cannot be passed to another process")
        session = self._gametape_session
        _PICKLED[:] = session, os.getpid()
        return _restore, (session.ask(words.PICKLE, self._gametape_number, protocol),)


_PICKLED: list[Any] = [None, None]
"""The session of what was pickled last, and the process it belongs to."""


def _restore(data: Any) -> Any:
    """An object of the worker from what the worker pickled: the worker reads it, never this process."""
    if _PICKLED[1] != os.getpid():
        raise TypeError("split mode: this was pickled by another process")
    return _PICKLED[0].ask(words.UNPICKLE, data)


def no_foreign_memory(name: str) -> None:
    """Refuse the attributes by which libraries take an object for memory: hostile code would choose the address."""
    if name.startswith("__array") or name in _MEMORY:
        raise AttributeError(f"split mode: {name} is not asked for")


class RemoteFunction(RemoteObject):
    """A function or method of the code under test."""

    def describe(self, name: str | None, qualname: str | None, module: str | None, doc: str | None) -> None:
        self.__name__, self.__qualname__, self.__module__ = name or "", qualname or name or "", module or ""
        self.__doc__ = doc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._gametape_session.ask(words.CALL, self._gametape_number, args, kwargs or None)

    def __getattr__(self, name: str) -> Any:
        no_foreign_memory(name)
        if name in _OF_CODE:
            raise AttributeError(f"split mode: {name} is not shown")
        if name == "__signature__":
            return _signature(self._gametape_session.ask(words.SIGNATURE, self._gametape_number))
        return self._gametape_session.ask(words.GET, self._gametape_number, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith(("__", "_gametape")):
            object.__setattr__(self, name, value)
        else:
            self._gametape_session.ask(words.SET, self._gametape_number, name, value)

    def __delattr__(self, name: str) -> None:
        self._gametape_session.ask(words.DELETE, self._gametape_number, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<function {self.__qualname__} of the code under test>"


class RemoteMethod:
    """A method of a handle, looked up when it is called."""

    __slots__ = ("__name__", "__self__")

    def __init__(self, handle: RemoteObject, name: str) -> None:
        self.__self__ = handle
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        handle = self.__self__
        return handle._gametape_session.ask(words.METHOD, handle._gametape_number, self.__name__, args, kwargs or None)

    def resolve(self) -> Any:
        """The worker's object for the method."""
        return self.__self__._gametape_session.ask(words.GET, self.__self__._gametape_number, self.__name__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.resolve(), name)

    def __eq__(self, other: object) -> bool:
        if type(other) is not RemoteMethod:
            return NotImplemented
        return self.__self__ is other.__self__ and self.__name__ == other.__name__

    def __hash__(self) -> int:
        return hash((id(self.__self__), self.__name__))


class RemoteIterator(RemoteObject):
    """A generator or iterator. Each element is fetched when it is needed, so it may be endless."""

    def __iter__(self) -> RemoteIterator:
        return self

    def __next__(self) -> Any:
        return self._gametape_session.ask(words.NEXT, self._gametape_number)

    def _method(self, name: str, *args: Any) -> Any:
        return self._gametape_session.ask(words.METHOD, self._gametape_number, name, args, None)

    def send(self, value: Any) -> Any:
        return self._method("send", value)

    def throw(self, *error: Any) -> Any:
        return self._method("throw", *error)

    def close(self) -> None:
        self._method("close")


class RemoteAsyncIterator(RemoteObject):
    """An asynchronous generator or iterator."""

    def __aiter__(self) -> RemoteAsyncIterator:
        return self

    def _method(self, name: str, *args: Any) -> Any:
        return self._gametape_session.ask(words.METHOD, self._gametape_number, name, args, None)

    def __anext__(self) -> Any:
        return self._method("__anext__")

    def asend(self, value: Any) -> Any:
        return self._method("asend", value)

    def athrow(self, *error: Any) -> Any:
        return self._method("athrow", *error)

    def aclose(self) -> Any:
        return self._method("aclose")


class RemoteAwaitable(RemoteObject):
    """A coroutine or other awaitable, which the worker runs when the test awaits it."""

    def wait(self) -> Coroutine[Any, Any, Any]:
        async def waited() -> Any:
            return await self._gametape_session.tasks.wait(self._gametape_number)

        return waited()


class RemoteContextManager(RemoteObject):
    """A context manager."""

    def __enter__(self) -> Any:
        return self._gametape_session.ask(words.METHOD, self._gametape_number, "__enter__", (), None)

    def __exit__(self, _: Any, error: BaseException | None, traceback: types.TracebackType | None) -> bool:
        return leave(self, error, traceback)

    def __call__(self, function: Any) -> Any:
        return self._gametape_session.ask(words.CALL, self._gametape_number, (function,), None)


def leave(remote: RemoteObject, error: BaseException | None, traceback: types.TracebackType | None) -> bool:
    """Leave a context of the worker; returns whether it suppresses the exception.

    It could suppress a failed assertion, or an error that keeps the test from its assertions. So it may suppress only
    what the test itself raised, by a `raise` in its own file.
    """
    suppressed = remote._gametape_session.ask(words.EXIT, remote._gametape_number, "__exit__", error)
    return suppressed is True and raised_by_test(error, traceback)


def raised_by_test(error: BaseException | None, traceback: types.TracebackType | None) -> bool:
    if traceback is None or not isinstance(error, Exception) or isinstance(error, AssertionError):
        return False
    outer = traceback
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code
    same_file = code.co_filename == outer.tb_frame.f_code.co_filename
    return same_file and code.co_code[traceback.tb_lasti] == _RAISE


def _signature(fields: Any) -> inspect.Signature:
    try:
        return build_signature(fields)
    except (TypeError, ValueError, KeyError):
        raise AttributeError("__signature__") from None
