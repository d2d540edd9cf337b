"""Translate between objects and stand-ins: the worker's objects in the test process, the test's objects in the worker.

The worker may return a handle only for an object whose class the task declares. It may return functions, iterators,
awaitables and context managers of any origin, since a test can only call, iterate, await or enter them, and none of
them equals anything but itself.
"""

from __future__ import annotations

import inspect
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import wire_protocol as words
from .proxy_classes import RemoteClass, RemoteClassTable
from .proxy_errors import RemoteErrorClass, build_error, number_of_error
from .proxy_remotes import (
    RemoteAsyncIterator,
    RemoteAwaitable,
    RemoteContextManager,
    RemoteFunction,
    RemoteIterator,
    RemoteMethod,
    RemoteObject,
)
from .wire import Unsendable, WireError
from .wire_errors import error_class, error_name
from .wire_functions import FUNCTIONS, signature_fields

if TYPE_CHECKING:
    from .proxy_session import ProxySession

_BUILTINS = (int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, types.MappingProxyType)
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
        self._live: weakref.WeakValueDictionary[int, RemoteObject] = weakref.WeakValueDictionary()
        self._callbacks: list[Any] = []
        self._callback_numbers: dict[int, int] = {}
        self._errors: list[BaseException] = []
        self._understood: dict[int, Callable[[Any], Any]] = {
            words.HANDLE: self._handle,
            words.FUNCTION: self._function,
            words.AWAITABLE: lambda payload: self._remote(_number(payload), RemoteAwaitable).wait(),
            words.CLASS: self._class,
            words.ERROR: lambda payload: build_error(self.classes, payload),
            words.YOURS: self.callback,
            words.YOUR_ERROR: self._own_error,
            words.MODULE: self._module,
        }

    def forget_errors(self) -> None:
        """Forget the exceptions of a call when the outermost call is over."""
        self._errors.clear()

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
        if type(payload) is not tuple or len(payload) != 2:
            raise WireError("a handle without its class")
        kind = self.classes.get(_number(payload[1]))
        if not isinstance(kind, RemoteClass) or not self.classes.is_declared(kind):
            raise WireError("a handle of a class that is not declared")
        return self._remote(_number(payload[0]), kind)

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
        return self.load(payload)

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
        kind = type(value)
        stand_in = self._of_worker(value) or self._of_test(value)
        if stand_in is None and not issubclass(kind, _BUILTINS):
            raise Unsendable(
                f"split mode: {kind.__module__}.{kind.__qualname__} cannot be passed to the code under test, only "
                "plain data, functions and what came from it; tests that need more use shared mode"
            )
        return stand_in

    def _of_worker(self, value: Any) -> tuple[int, Any] | None:
        """The stand-in of something that came from the worker, or that it knows by name."""
        if isinstance(value, RemoteObject):
            return words.MINE, RemoteObject.number(value)
        if type(value) is RemoteMethod:
            return words.MINE, RemoteObject.number(value.resolve())
        if isinstance(value, (RemoteClass, RemoteErrorClass)):
            return words.CLASS, value._gametape_class[1]
        if isinstance(value, type) and issubclass(value, Exception) and error_name(value):
            return words.CLASS, error_name(value)
        return None

    def _of_test(self, value: Any) -> tuple[int, Any] | None:
        kind = type(value)
        if isinstance(value, BaseException):
            return words.ERROR_OF_TEST, self._error_fields(value)
        if isinstance(value, FUNCTIONS):
            return words.FUNCTION_OF_TEST, self._function_fields(value)
        if hasattr(kind, "__next__") and kind.__module__ in ("builtins", "itertools"):
            return words.ITERATOR_OF_TEST, self._callback_number(value.__next__)
        return None

    def _callback_number(self, function: Any) -> int:
        number = self._callback_numbers.get(id(function))
        if number is None:
            number = self._callback_numbers[id(function)] = len(self._callbacks)
            self._callbacks.append(function)
        return number

    def _function_fields(self, function: Any) -> tuple[Any, ...]:
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise Unsendable("split mode: an async function cannot be called back; such tests use shared mode")
        name = getattr(function, "__name__", "callback")
        doc = getattr(function, "__doc__", None)
        signature = signature_fields(function)
        return self._callback_number(function), name, getattr(function, "__qualname__", name), doc, signature

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


def _plain(value: Any) -> Any:
    return value if type(value) in (int, float, str, bytes, bool, type(None)) else str(value)


def _number(payload: Any) -> int:
    if type(payload) is not int:
        raise WireError("a stand-in without its number")
    return payload


def _no_module(name: str) -> Any:
    raise WireError(f"the module {name} is not served")
