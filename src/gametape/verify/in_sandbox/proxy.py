"""Proxy modules in the test process, in place of the agent's modules, which are in the worker's sandbox.

`install_proxy` puts an import finder before all others. It serves the modules that a task declares and their parent
packages; the worker answers for every attribute. A name that is missing there is missing here, with the same
exceptions.
"""

from __future__ import annotations

import builtins
import dis
import importlib.abc
import importlib.machinery
import importlib.util
import socket
import sys
import types
from collections.abc import Iterable, Sequence
from typing import Any

from . import wire_protocol as words
from .proxy_classes import RemoteClass
from .proxy_errors import RemoteErrorClass
from .proxy_patches import is_shared_module, load_shared_modules
from .proxy_programs import route_programs
from .proxy_remotes import RemoteFunction
from .proxy_session import ProxySession
from .proxy_surroundings import Surroundings

__tracebackhide__ = True  # a failed test shows the test, not these frames

_LOCAL = frozenset({"__path__", "__file__", "__cached__", "__wrapped__", "__test__", "pytest_plugins"})
_STAR = {dis.opmap[name] for name in ("IMPORT_STAR", "CALL_INTRINSIC_1") if name in dis.opmap}
_TO_PYTEST = ("_", "test", "pytest", "setup", "teardown", "load_tests", "collect_ignore")
_PLAIN = (int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, type(None))
_CACHED = (RemoteClass, RemoteErrorClass, RemoteFunction, types.ModuleType)


def install_proxy(
    sock: socket.socket,
    modules: Iterable[str],
    classes: Iterable[str] = (),
    import_roots: Iterable[str] = (),
    seconds: float = 10.0,
    recorded: bool = False,
    scratch: tuple[str, ...] = (),
    workspace: str | None = None,
) -> ProxySession:
    """Serve `modules` from the worker at the other end of the socket.

    `classes` are those whose objects come back as handles (`module:Class`), `import_roots` the directories, in the
    worker's sandbox, that its imports start from; a call may take `seconds`. For `recorded` see ProxySession. Files
    below the directories `scratch` and `workspace`, which have the same names there, are shared (see
    proxy_surroundings). Raises ValueError for a module that the test process has, or may need, itself.
    """
    served = frozenset(_with_parents(modules))
    for name in sorted(served):
        if name in sys.modules or name.partition(".")[0] in sys.stdlib_module_names:
            raise ValueError(f"{name}: the test process needs a module of this name itself; use shared mode")
    session = ProxySession(sock, tuple(classes), seconds, recorded)
    session.ask(words.HELLO, tuple(import_roots), tuple(sorted(served)), tuple(classes), scratch, workspace)
    if workspace is not None:
        load_shared_modules()
        route_programs(session, served)
    Surroundings(session, served, scratch, workspace)
    sys.meta_path.insert(0, ProxyFinder(session, served))
    return session


def _with_parents(modules: Iterable[str]) -> Iterable[str]:
    for module in modules:
        parts = module.split(".")
        yield from (".".join(parts[: count + 1]) for count in range(len(parts)))


class ProxyModule(types.ModuleType):
    """A module of the worker. Functions and classes are fetched once, plain data each time. What a test sets or deletes
    here is set or deleted there."""

    _gametape_session: ProxySession

    def __setattr__(self, name: str, value: Any) -> None:
        is_child = isinstance(value, types.ModuleType) and value.__name__ == f"{self.__name__}.{name}"
        if is_child or name == "_gametape_session" or (name.startswith("__") and name.endswith("__")):
            super().__setattr__(name, value)
            return
        self._gametape_session.ask(words.SET_IN_MODULE, self.__name__, name, value)
        self.__dict__.pop(name, None)
        if not isinstance(value, _PLAIN):
            self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        self._gametape_session.ask(words.DELETE_IN_MODULE, self.__name__, name)
        self.__dict__.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        if name in _LOCAL:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        session = self._gametape_session
        importing = sys._getframe(1)
        if name == "__all__" and importing.f_code.co_code[importing.f_lasti] in _STAR:
            return _harmless(session.ask(words.MODULE_NAMES, self.__name__)[1], importing.f_globals)
        with session.stand_ins.asked_for(name):
            value = session.ask(words.MODULE_ATTRIBUTE, self.__name__, name)
        session.stand_ins.classes.mention(value)
        if isinstance(value, _CACHED):
            self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return list(self._gametape_session.ask(words.MODULE_NAMES, self.__name__)[0])


def _harmless(names: Any, taken: dict[str, Any]) -> list[str]:
    """The names that a star import may take. The worker chooses them, so none may replace a builtin or a name of the
    test module, or mean something to pytest."""
    return [
        name
        for name in names
        if type(name) is str and not (name in taken or hasattr(builtins, name) or name.lower().startswith(_TO_PYTEST))
    ]


class ProxyFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads exactly the served modules."""

    def __init__(self, session: ProxySession, served: frozenset[str]) -> None:
        self._session = session
        self._served = served
        self._loaded: set[str] = set()
        session.stand_ins.load, session.stand_ins.shares = self._load, self._is_known

    def _is_known(self, name: str) -> bool:
        return name in self._served or is_shared_module(name)

    def _load(self, name: str) -> types.ModuleType:
        if self._is_known(name):
            return importlib.import_module(name)
        return types.ModuleType(name)  # a module that the test process has no use for

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._served:
            return None
        doc, is_package = self._session.ask(words.IMPORT, fullname)
        spec = importlib.machinery.ModuleSpec(fullname, self, origin="the code under test", is_package=is_package)
        spec.loader_state = doc
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = ProxyModule(spec.name, spec.loader_state if isinstance(spec.loader_state, str) else None)
        module._gametape_session = self._session
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """The content of a proxy module is in the worker, which runs it again where a test wants it loaded again."""
        if module.__name__ in self._loaded:
            self._session.ask(words.RELOAD, module.__name__)
            for name in [name for name, value in vars(module).items() if isinstance(value, _CACHED)]:
                if not isinstance(vars(module)[name], ProxyModule):
                    del module.__dict__[name]
        self._loaded.add(module.__name__)
