"""Translate between objects and stand-ins: the worker's objects in the test process, the test's objects in the worker.

The worker may return a handle only for an object whose class the task declares. It may return functions, iterators,
awaitables and context managers of any origin, since a test can only call, iterate, await or enter them, and none of
them equals anything but itself.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import types
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from . import wire_protocol as words
from .proxy_classes import RemoteClass, RemoteClassTable
from .proxy_errors import RemoteErrorClass, build_error, number_of_error
from .proxy_objects import (
    ObjectPort,
    data_of,
    describe_class_of_test,
    is_library,
    library_name,
    may_have_port,
    neutral_name,
    refuse,
)
from .proxy_remotes import (
    RemoteAsyncIterator,
    RemoteAwaitable,
    RemoteContextManager,
    RemoteFunction,
    RemoteIterator,
    RemoteMethod,
    RemoteObject,
)
from .proxy_subclasses import FunctionOfClass
from .wire import WireError
from .wire_bases import DataBase
from .wire_errors import error_class, error_name
from .wire_functions import FUNCTIONS, signature_fields

if TYPE_CHECKING:
    from .proxy_session import ProxySession

_MOST_KEPT = 10_000
"""Handles of types that cannot be referred to weakly, as ints: the oldest are given up."""
_RUN_CODE = frozenset(
    {"pickle", "_pickle", "marshal", "shelve", "subprocess", "runpy", "importlib", "ctypes", "code", "codeop", "pty"}
    | {"multiprocessing", "zipimport", "os", "posix", "shutil", "builtins", "copyreg", "sys"}
)
"""Modules that a test must have asked for by name: it might use them on what the worker sent."""
_PLAIN_REMOTES: dict[int, type[RemoteObject]] = {
    words.ITERATOR: RemoteIterator,
    words.ASYNC_ITERATOR: RemoteAsyncIterator,
    words.CONTEXT: RemoteContextManager,
}


class ObjectTranslator:
    """Translates in both directions and keeps the state for it."""

    def __init__(self, session: ProxySession, declared: frozenset[str]) -> None:
        self._session = session
        self.classes = RemoteClassTable(session, declared)
        self.load: Callable[[str], Any] = _no_module
        self.shares: Callable[[str], bool] = lambda _: False
        """Whether the worker has a module of this name too."""
        self._live: weakref.WeakValueDictionary[int, RemoteObject] = weakref.WeakValueDictionary()
        self._kept: dict[int, RemoteObject] = {}
        self._lent: dict[int, Any] = {}
        self._library_name: str | None = None
        self._callbacks: list[Any] = []
        self._callback_numbers: dict[int, int] = {}
        self._errors: list[BaseException] = []
        self._understood: dict[int, Callable[[Any], Any]] = {
            words.HANDLE: self._handle,
            words.FUNCTION: self._function,
            words.AWAITABLE: lambda payload: self._remote(_number(payload), RemoteAwaitable).wait(),
            words.CLASS: self._class,
            words.ERROR: lambda payload: build_error(self.classes, payload),
            words.YOURS: lambda payload: _original(self.callback(payload)),
            words.YOUR_ERROR: self._own_error,
            words.MODULE: self._module,
            words.LOGGER: _logger,
        }

    def forget_errors(self) -> None:
        """Forget the exceptions and containers of a call when the outermost call is over."""
        self._errors.clear()
        self._lent.clear()

    def is_lent(self, container: Any) -> bool:
        """Whether the worker got this container of the test during the outermost call, and may change it."""
        return self._lent.get(id(container)) is container

    def callback(self, number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(self._callbacks):
            raise self._session.end(WireError("a callback that was never given"))
        return self._callbacks[number]

    def understand(self, kind: int, payload: Any) -> Any:
        """The object for a stand-in of the worker. Raises WireError for what no honest worker sends."""
        if kind in _PLAIN_REMOTES:
            return self._remote(_number(payload), _PLAIN_REMOTES[kind])
        if kind not in self._understood:
            raise WireError(f"an unknown kind of stand-in, {kind}")
        return self._understood[kind](payload)

    def _handle(self, payload: Any) -> Any:
        if type(payload) is not tuple or len(payload) not in (2, 3):
            raise WireError("a handle without its class")
        kind = self.classes.get(_number(payload[1]))
        if not isinstance(kind, RemoteClass) or not self.classes.is_declared(kind):
            raise WireError("a handle of a class that is not declared")
        base = kind._gametape_class.base
        if base is None and len(payload) == 2:
            return self._remote(_number(payload[0]), kind)
        if base is None or (len(payload) == 3 and type(payload[2]) is not base.plain):
            raise WireError("a handle with data that are none of its class")
        return self._mirror(_number(payload[0]), kind, base, payload[2:])

    def _mirror(self, number: int, kind: Any, base: DataBase, sent: tuple[Any, ...]) -> Any:
        """The stand-in of an object with data. The data of a container are sent once in a frame, at the outermost place
        where it stands, which is read last: until then it is empty."""
        remote: Any = self._live.get(number, self._kept.get(number))
        if remote is not None and type(remote) is kind:
            RemoteObject.count_again(remote)
            if sent and base.replace is not None and not _same_data(base.read(remote), sent[0]):
                base.replace(remote, sent[0])
            return remote
        if not sent and base.replace is None:
            raise WireError("a handle without the data of its class")
        remote = RemoteObject.make(kind, self._session, number, base, sent[0] if sent else base.plain())
        if kind.__weakrefoffset__:
            self._live[number] = remote
        else:
            self._kept[number] = remote
            if len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        return remote

    def _class(self, payload: Any) -> Any:
        return error_class(payload) if type(payload) is str else self.classes.get(_number(payload))

    def _own_error(self, payload: Any) -> BaseException:
        """An exception that a callback of this call raised, or an argument of it."""
        number = _number(payload)
        if not 0 <= number < len(self._errors):
            raise WireError("an exception that was never given")
        return self._errors[number]

    def _module(self, payload: Any) -> Any:
        if type(payload) is not str:
            raise WireError("a module without its name")
        if payload.partition(".")[0] in _RUN_CODE and payload.rpartition(".")[2] != self._library_name:
            raise WireError("a module that runs code, and that was not asked for by its name")
        return self.load(payload)

    @contextlib.contextmanager
    def asked_for(self, name: str) -> Iterator[None]:
        """While the test asks for an attribute of this name, it may be any module of that name."""
        outer, self._library_name = self._library_name, name
        try:
            yield
        finally:
            self._library_name = outer

    def _remote(self, number: int, kind: Any) -> Any:
        """The stand-in of an object: the same one while the test holds it, so that `is` works."""
        remote = self._live.get(number)
        if remote is None or type(remote) is not kind:
            remote = RemoteObject.make(kind, self._session, number)
            self._live[number] = remote
        else:
            RemoteObject.count_again(remote)
        return remote

    def _function(self, payload: Any) -> Any:
        if type(payload) is not tuple or len(payload) != 5:
            raise WireError("a function without its names")
        number, *texts = payload
        if any(text is not None and type(text) is not str for text in texts):
            raise WireError("a function whose names are no texts")
        function = self._remote(_number(number), RemoteFunction)
        function.describe(*texts)
        return function

    def extend(self, value: Any) -> tuple[int, Any] | None:
        """The stand-in of a value of the test that is not plain data; None where its builtin base type is enough."""
        return self._of_worker(value) or self._of_test(value)

    def _of_worker(self, value: Any) -> tuple[int, Any] | None:
        """The stand-in of something that came from the worker, or that it knows by name."""
        if isinstance(value, RemoteObject):
            return words.MINE, RemoteObject.number(value)
        if type(value) is RemoteMethod:
            return words.MINE, RemoteObject.number(value.resolve())
        if isinstance(value, logging.Logger) or (isinstance(value, types.ModuleType) and self.shares(value.__name__)):
            return (words.LOGGER, value.name) if isinstance(value, logging.Logger) else (words.MODULE, value.__name__)
        if isinstance(value, (RemoteClass, RemoteErrorClass)):
            return words.CLASS, value._gametape_class[1]
        if isinstance(value, type) and issubclass(value, Exception) and error_name(value):
            return words.CLASS, error_name(value)
        return None

    def _of_test(self, value: Any) -> tuple[int, Any] | None:
        kind = type(value)
        if isinstance(value, BaseException):
            return words.ERROR_OF_TEST, self._error_fields(value)
        if kind in (property, staticmethod, classmethod):
            functions = (value.fget, value.fset, value.fdel) if kind is property else (value.__func__,)
            return words.DESCRIPTOR_OF_TEST, (kind.__name__, functions)
        if isinstance(value, FUNCTIONS) or kind is FunctionOfClass or kind.__name__ == "AsyncMock":
            return self._function_of_test(value)
        return self._of_test_in_steps(value) or self._of_test_whole(value)

    def _of_test_in_steps(self, value: Any) -> tuple[int, Any] | None:
        kind = type(value)
        if kind.__module__ in ("builtins", "_asyncio") and inspect.isawaitable(value):
            return words.AWAITABLE_OF_TEST, self._session.tasks.give(value)
        if inspect.isasyncgen(value):
            return words.ASYNC_ITERATOR_OF_TEST, self._callback_number(value.__anext__)
        if hasattr(kind, "__next__") and kind.__module__ in ("builtins", "itertools"):
            return words.ITERATOR_OF_TEST, self._callback_number(value.__next__)
        return None

    def _of_test_whole(self, value: Any) -> tuple[int, Any] | None:
        kind = type(value)
        if kind is types.MappingProxyType:
            return None
        if isinstance(value, type):
            return self._class_of_test(value)
        if not may_have_port(kind):
            raise refuse(kind)
        return words.OBJECT_OF_TEST, self._object_fields(value)

    def _class_of_test(self, kind: type) -> tuple[int, Any]:
        if is_library(kind):
            return words.NAMED_OF_TEST, (self._callback_number(kind), f"{kind.__module__}:{kind.__qualname__}")
        if issubclass(kind, BaseException) or not may_have_port(kind):
            raise refuse(kind)
        return words.CLASS_OF_TEST, describe_class_of_test(kind, self._port_number(kind))

    def _object_fields(self, value: Any) -> tuple[Any, ...]:
        kind = type(value)
        description = describe_class_of_test(kind, self._port_number(kind))
        found = data_of(value)
        data = None if found is None else found[1]
        if found is not None and found[0].replace is not None:
            self._lent[id(value)] = value
        return self._port_number(value), description, data

    def _port_number(self, target: Any) -> int:
        number = self._callback_numbers.get(id(target))
        if number is None:
            number = self._callback_numbers[id(target)] = len(self._callbacks)
            self._callbacks.append(ObjectPort(target))
        return number

    def _callback_number(self, function: Any) -> int:
        number = self._callback_numbers.get(id(function))
        if number is None:
            number = self._callback_numbers[id(function)] = len(self._callbacks)
            self._callbacks.append(function)
        return number

    def _function_of_test(self, function: Any) -> tuple[int, Any]:
        name = library_name(function)
        if name is not None:
            return words.NAMED_OF_TEST, (self._callback_number(function), name)
        is_async = inspect.iscoroutinefunction(function) or type(function).__name__ == "AsyncMock"
        return words.ASYNC_FUNCTION_OF_TEST if is_async else words.FUNCTION_OF_TEST, self._function_fields(function)

    def _function_fields(self, function: Any) -> tuple[Any, ...]:
        name = getattr(function, "__name__", "callback")
        doc = getattr(function, "__doc__", None)
        signature = signature_fields(function)
        qualname = neutral_name(getattr(function, "__qualname__", name))
        return self._callback_number(function), neutral_name(name), qualname, doc, signature

    def _error_fields(self, error: BaseException) -> tuple[Any, ...]:
        self._errors.append(error)
        origin = len(self._errors) - 1
        number = number_of_error(error)
        if number is not None:
            return None, (), number, origin
        references = (
            base._gametape_class[1] if isinstance(base, RemoteErrorClass) else error_name(base)
            for base in type(error).__mro__
        )
        reference = next((name for name in references if name is not None), "RuntimeError")
        return reference, tuple(map(_plain, error.args)), None, origin


def _original(value: Any) -> Any:
    """The test's own object behind a callback."""
    if type(value) is ObjectPort:
        return value.target
    return value.__wrapped__ if type(value) is FunctionOfClass else value


def _plain(value: Any) -> Any:
    return value if type(value) in (int, float, str, bytes, bool, type(None)) else str(value)


def _same_data(before: Any, after: Any) -> bool:
    """Whether two containers have the same elements. A container that is iterated over is left alone then."""
    if type(before) is dict:
        before, after = ([part for pair in data.items() for part in pair] for data in (before, after))
    return len(before) == len(after) and all(
        one is other or (type(one) is type(other) and type(one) in (int, str, float) and one == other)
        for one, other in zip(before, after, strict=True)
    )


def _number(payload: Any) -> int:
    if type(payload) is not int:
        raise WireError("a stand-in without its number")
    return payload


def _logger(payload: Any) -> logging.Logger:
    if type(payload) is not str or len(payload) > 1000:
        raise WireError("a logger without its name")
    return logging.getLogger(payload)


def _no_module(name: str) -> Any:
    raise WireError(f"the module {name} is not served")
