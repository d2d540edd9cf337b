"""Which tests use a network, and which write outside of the workspace and scratch directories."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

_NETWORK = frozenset(("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.bind"))
_CHANGES = frozenset(("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate", "shutil.rmtree"))
_OWN = ("/workspace", "/tmp", "/dev", "/proc")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class SideEffectRecorder:
    """A pytest plugin with an audit hook. `tests_by_effect` has tests that used the `network` or wrote `outside`."""

    def __init__(self) -> None:
        self.tests_by_effect: dict[str, list[str]] = {"network": [], "outside": []}
        self._test = ""
        sys.addaudithook(self._on_audit_event)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._test = item.nodeid
        try:
            return (yield)
        finally:
            self._test = ""

    def _on_audit_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _NETWORK:
            if not (event in ("socket.connect", "socket.bind") and isinstance(arguments[1], str | bytes)):
                self._note("network")
        elif (event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES) or event in _CHANGES:
            path = arguments[0]
            if isinstance(path, str | bytes | os.PathLike) and not self._is_own(os.fsdecode(path)):
                self._note("outside")

    @staticmethod
    def _is_own(path: str) -> bool:
        whole = os.path.normpath(os.path.join("/workspace", path))
        return any(whole == directory or whole.startswith(f"{directory}/") for directory in _OWN)

    def _note(self, effect: str) -> None:
        if self._test not in self.tests_by_effect[effect]:
            self.tests_by_effect[effect].append(self._test)
