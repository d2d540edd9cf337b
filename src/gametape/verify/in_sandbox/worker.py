"""The worker: runs the agent's code and answers the test process.

The worker shares a process with hostile code and is not trusted; it only has to serve honest code well. It imports
modules on request, runs every call in the main thread, one at a time, and always answers: an exception of any kind is
an answer, output is collected up to a limit and sent along, and the recursion limit is reset after each call. If the
code ends the process or takes the socket, the test process sees a closed connection.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import operator
import os
import pickle
import socket
import sys
import types
from collections.abc import Callable
from typing import Any

from . import wire_protocol as words
from .argument_changes import ArgumentChanges
from .wire import Unsendable, WireError
from .wire_channel import WireChannel
from .wire_functions import signature_fields
from .worker_loop import WorkerLoop
from .worker_objects import ObjectTable, Unbound
from .worker_patches import AttributePatches
from .worker_peer import WorkerPeer
from .worker_programs import invoke, run_module, run_program
from .worker_subclasses import build_subclass
from .worker_surroundings import WorkerSurroundings

_MOST_OUTPUT = 1 << 20
_LOOK_UPS = frozenset({words.HELLO, words.IMPORT, words.MODULE_ATTRIBUTE, words.DESCRIBE, words.SIGNATURE})
"""Operations after which the test process has mostly sent the next request already."""
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
        self._recursion = sys.getrecursionlimit()
        self._directory, self._environment = os.getcwd(), dict(os.environ)
        self._variables = dict(os.environ._data)  # type: ignore[attr-defined]
        self._patches = AttributePatches()
        self._surroundings = WorkerSurroundings()
        self._roots: list[str] = []
        self._begin()
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
            words.SET: lambda number, name, value: self._patches.set(self._objects[number], name, value),
            words.DELETE: lambda number, name: self._patches.delete(self._objects[number], name),
            words.SET_IN_MODULE: lambda module, name, value: self._patches.set(
                importlib.import_module(module), name, value
            ),
            words.DELETE_IN_MODULE: lambda module, name: self._patches.delete(importlib.import_module(module), name),
            words.SURROUND: self._surround,
            words.RELOAD: self._reload,
            words.RUN_PROGRAM: lambda *fields: run_program(self._roots, *fields),
            words.RUN_MODULE: run_module,
            words.INVOKE: invoke,
            words.SPECIAL: self._special,
            words.EQUALS: self._equals,
            words.DESCRIBE: lambda number: self._objects.describe(self._objects[number]),
            words.NEXT: lambda number: next(self._objects[number]),
            words.AWAIT: lambda number: self._loop.wait(self._objects[number]),
            words.START: lambda number: self._loop.start(self._objects[number]),
            words.CONTINUE: lambda *fields: self._loop.go_on(*fields),  # noqa: PLW0108 - another one after a new start
            words.CANCEL: lambda *fields: self._loop.cancel(*fields),  # noqa: PLW0108
            words.SETTLE: lambda *fields: self._loop.settle(*fields),  # noqa: PLW0108
            words.MAKE_ERROR: lambda number, args, kwargs: self._peer.error_fields(
                self._objects[number](*args, **kwargs or {})
            ),
            words.SIGNATURE: lambda number: signature_fields(self._objects[number]),
            words.OF_CLASS: lambda number, name, args: _CLASS_OPERATORS[name](self._objects[number], *args),
            words.EXIT: self._exit,
            words.PICKLE: lambda number, protocol: pickle.dumps(self._objects[number], protocol),
            words.UNPICKLE: pickle.loads,
            words.SUPER: self._super,
            words.SUBCLASS: lambda name, bases, members: self._objects.number(
                build_subclass(name, tuple(self._objects[base] for base in bases), members)
            ),
            words.COPY: lambda number, deep: (copy.deepcopy if deep else copy.copy)(self._objects[number]),
        }

    def serve(self) -> None:
        """Answer requests. After an empty frame they are those of another test process."""
        self._redirect()
        while True:
            body = self._channel.receive()
            if body:
                self._handle(*self._peer.read(body))
            else:
                self._begin()

    def _begin(self) -> None:
        """Forget what an earlier test process knew, and restore what code changes in passing. Modules stay loaded."""
        self._objects = ObjectTable()
        self._loop = WorkerLoop()
        self._peer = WorkerPeer(self._channel, self._objects, self._handle, self._loop)
        self._modules: frozenset[str] = frozenset()
        if os.environ._data != self._variables:  # type: ignore[attr-defined]
            os.environ.clear()
            os.environ.update(self._environment)
        os.chdir(self._directory)
        self._patches.undo()
        self._surroundings.reset()

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
        with self._peer.during_a_call(), self._objects.during(number):
            answer = self._run(number, operation, fields, changes)
        self._peer.send(answer, at_once=operation not in _LOOK_UPS)

    def _run(self, number: int, operation: int, fields: tuple[Any, ...], changes: ArgumentChanges) -> bytes:
        seen: tuple[Any, ...] | None = None
        try:
            try:
                with self._loop.running():
                    value = self._operations[operation](*fields)
            finally:
                with contextlib.suppress(RecursionError):
                    sys.setrecursionlimit(self._recursion)
                seen = self._seen()
            same = changes.position(value)
            head = (words.RETURN, number, value) if same is None else (words.SAME, number, same)
            return self._answer(head, changes, seen)
        except Unbound as error:
            raised: BaseException = LookupError(str(error))
        except BaseException as error:
            raised = error.with_traceback(None)
        try:
            return self._answer((words.RAISE, number, raised), changes, seen)
        except BaseException as error:
            plain = TypeError(f"{type(raised).__name__}, with something that is not plain data: {error}")
            return self._answer((words.RAISE, number, plain), ArgumentChanges([]), None)

    def _answer(self, head: tuple[Any, ...], changes: ArgumentChanges, seen: tuple[Any, ...] | None) -> bytes:
        try:
            updates = (*changes.updates(), *self._peer.changed())
            return self._peer.encode((*head, updates, seen))
        except Unsendable as error:
            raise TypeError(f"split mode: {error}; declare its class in the task, or use shared mode") from None

    def _seen(self) -> tuple[Any, ...] | None:
        """What a test can see of a call beside its answer: output, and effects where there are any."""
        effects = self._surroundings.effects()
        if not effects and not any(output.tell() for output in self._outputs):
            return None
        texts = tuple(output.getvalue().decode("utf-8", "replace") for output in self._outputs)
        for output in self._outputs:
            output.seek(0)
            output.truncate()
        return (*texts, effects) if effects else texts

    def _hello(
        self,
        roots: tuple[str, ...],
        modules: tuple[str, ...],
        classes: tuple[str, ...],
        scratch: tuple[str, ...] = (),
        workspace: str | None = None,
    ) -> None:
        self._roots = [*roots]
        self._surroundings.listen()
        self._surroundings.share(scratch, workspace)
        sys.path[:0] = [root for root in roots if root not in sys.path]
        self._modules = frozenset(modules)
        self._objects.declared, self._objects.modules = frozenset(classes), self._modules

    def _import(self, name: str) -> tuple[str | None, bool]:
        module = importlib.import_module(name)
        return module.__doc__, hasattr(module, "__path__")

    def _surround(self, changes: dict[str, Any]) -> None:
        if "loop" in changes:
            self._loop.enter(*changes["loop"])
        self._surroundings.change({name: change for name, change in changes.items() if name != "loop"})

    def _reload(self, name: str) -> None:
        importlib.reload(importlib.import_module(name))

    def _module_attribute(self, name: str, attribute: str) -> Any:
        return getattr(importlib.import_module(name), attribute)

    def _module_names(self, name: str) -> tuple[list[str], list[str]]:
        """All names, and those that a star import takes, as far as they can cross."""
        module = importlib.import_module(name)
        public = getattr(module, "__all__", [attribute for attribute in dir(module) if not attribute.startswith("_")])
        missing = [attribute for attribute in public if not hasattr(module, attribute)]
        crossing = [attribute for attribute in public if self._crosses(getattr(module, attribute, None))]
        return dir(module), missing + crossing

    def _crosses(self, value: Any) -> bool:
        if isinstance(value, types.ModuleType):
            return value.__name__ in self._modules or value.__name__ in sys.stdlib_module_names
        return self._peer.crosses(value)

    def _special(self, number: int, name: str, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        target = self._objects[number]
        return getattr(type(target), name)(target, *args, **kwargs or {})

    def _equals(self, number: int, candidates: tuple[Any, ...]) -> list[tuple[bool, Any]]:
        """For each candidate whether the comparison raised, and its result or exception; for a result that is no bool
        an ellipsis."""
        target: Any = self._objects[number]
        equal: Any = type(target).__eq__
        outcomes: list[tuple[bool, Any]] = []
        for candidate in candidates:
            try:
                result = equal(target, candidate)
                outcomes.append((False, result if isinstance(result, (bool, types.NotImplementedType)) else Ellipsis))
            except Exception as error:
                outcomes.append((True, error))
        return outcomes

    def _super(self, above: int, number: int, name: str, args: tuple[Any, ...] | None, kwargs: Any) -> Any:
        """A member that a class of a test overrides."""
        member = getattr(super(self._objects[above], self._objects[number]), name)
        return member if args is None else member(*args, **kwargs or {})

    def _exit(self, number: int, name: str, error: BaseException | None) -> Any:
        target = self._objects[number]
        result = getattr(type(target), name)(target, None if error is None else type(error), error, None)
        return bool(result) if name == "__exit__" else result
