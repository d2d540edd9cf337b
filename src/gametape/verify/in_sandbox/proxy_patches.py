"""Patches that a test makes on modules which both sides have: the standard library and installed packages.

A module that is watched notes when an attribute is set or deleted, by `monkeypatch`, `mock.patch` or an assignment.
Before the next request the worker's module of that name is changed alike, and changed back when the test has put back
what was there. A value that cannot cross stays here.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

from . import wire_protocol as words
from .wire import Unsendable

if TYPE_CHECKING:
    from .proxy_session import ProxySession

_WORDS = """
    argparse base64 builtins calendar codecs configparser copy csv ctypes.util datetime decimal email fnmatch functools
    getopt getpass glob gzip hashlib http.client importlib.metadata inspect io itertools json locale math operator os
    pathlib pickle platform posixpath pprint pwd queue random re secrets select shlex shutil signal smtplib socket
    sqlite3 ssl stat statistics string struct subprocess sys sysconfig tempfile textwrap threading time timeit tokenize
    traceback types unicodedata urllib.parse urllib.request uuid webbrowser xml.etree.ElementTree zipfile zlib zoneinfo
"""
_STANDARD = frozenset(_WORDS.split())
_OF_RUNNER = frozenset({"pytest", "_pytest", "pluggy", "iniconfig", "hypothesis", "anyio", "pytest_asyncio"})
_OF_SYS = """
    stdin stdout stderr modules path meta_path path_hooks path_importer_cache last_type last_value last_traceback
    last_exc excepthook unraisablehook breakpointhook displayhook dont_write_bytecode ps1 ps2 tracebacklimit executable
    prefix
"""
_OF_PROCESS = {
    "sys": frozenset(_OF_SYS.split()),
    "threading": frozenset({"excepthook", "_shutdown", "_profile_hook", "_trace_hook"}),
    "builtins": frozenset({"_", "exit", "quit"}),
    "subprocess": frozenset({"Popen"}),
}
"""Attributes that belong to this process or to pytest in it."""
_ABSENT = object()


class ModulePatches:
    """The patches of the watched modules."""

    def __init__(self, session: ProxySession, served: frozenset[str]) -> None:
        self._session = session
        self._served = frozenset(name.partition(".")[0] for name in served)
        self._before: dict[tuple[str, str], Any] = {}
        self._pending: dict[tuple[str, str], Any] = {}
        self._told: set[tuple[str, str]] = set()
        self._seen: set[str] = set()
        self._watched_class = _watched_class(self)
        for name in _STANDARD:
            self._watch(sys.modules.get(name))

    def note(self, module: types.ModuleType, name: str, value: Any) -> None:
        """An attribute of a watched module is about to be set; without a value, to be deleted."""
        if name in _OF_PROCESS.get(module.__name__, ()) or (name.startswith("__") and name.endswith("__")):
            return
        if isinstance(value, types.ModuleType) and value.__name__ == f"{module.__name__}.{name}":
            return  # an import of what is below
        key = module.__name__, name
        self._before.setdefault(key, vars(module).get(name, _ABSENT))
        self._pending[key] = value

    def tell(self) -> None:
        """Tell the worker of what changed, and watch modules that were imported since."""
        if len(sys.modules) != len(self._seen):
            for name in list(sys.modules):
                if name not in self._seen:
                    self._seen.add(name)
                    self._watch_if_shared(name)
        if self._pending:
            pending, self._pending = self._pending, {}
            for key, value in pending.items():
                self._tell_one(key, value)

    def _tell_one(self, key: tuple[str, str], value: Any) -> None:
        try:
            if value is self._before[key]:
                del self._before[key]
                if key in self._told:
                    self._told.discard(key)
                    self._session.ask(words.DELETE_IN_MODULE, *key)
            elif value is _ABSENT:
                self._told.add(key)
                self._session.ask(words.DELETE_IN_MODULE, *key)
            else:
                self._session.ask(words.SET_IN_MODULE, *key, value)
                self._told.add(key)
        except (Unsendable, ImportError, AttributeError):
            return

    def _watch_if_shared(self, name: str) -> None:
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        top = name.partition(".")[0]
        is_installed = isinstance(file, str) and "/site-packages/" in file
        if name in _STANDARD or (is_installed and top not in _OF_RUNNER | self._served):
            self._watch(module)

    def _watch(self, module: Any) -> None:
        if type(module) is types.ModuleType:
            module.__class__ = self._watched_class


def _watched_class(patches: ModulePatches) -> type[types.ModuleType]:
    class WatchedModule(types.ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            patches.note(self, name, value)
            super().__setattr__(name, value)

        def __delattr__(self, name: str) -> None:
            patches.note(self, name, _ABSENT)
            super().__delattr__(name)

    return WatchedModule


def is_shared_module(name: str) -> bool:
    """Whether a module that the worker names may be shown as this process' own of that name."""
    return name in _STANDARD or (name in sys.modules and name.partition(".")[0] in sys.stdlib_module_names)


def load_shared_modules() -> None:
    """Import the modules that tests like to patch, so that they are watched from the start."""
    for name in ("getpass", "platform", "random", "shutil", "socket", "subprocess", "tempfile", "uuid", "webbrowser"):
        __import__(name)
