"""What the test runner itself is made of: a project among it cannot be taken apart while it runs."""

import functools
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

_ROOTS = ("pytest", "coverage")
_INSTALLED = """
import importlib.metadata, json
print(json.dumps({one.metadata["Name"]: one.requires or [] for one in importlib.metadata.distributions()}))
"""
_LOADED = """
import json, sys
import coverage, pytest, _pytest.config
_pytest.config.get_config()
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def why_runner_needs(name: str, packages: Sequence[str], interpreter: Path) -> str | None:
    """Why a project with this name and these packages cannot be taken apart under this interpreter's runner, or None.

    What the runner requires is asked there. What it loads is asked of gametape's own interpreter, so that nothing that
    is installed elsewhere runs outside a sandbox.
    """
    if canonicalize_name(name) in _required(interpreter):
        return f"the test runner needs {name} itself: with parts of it deleted, no test would run"
    for package in packages:
        if package in sys.stdlib_module_names:
            return f"its package {package} has the name of a module of Python's own library"
        if package in _loaded():
            return f"the test runner imports {package} itself: with parts of it deleted, no test would run"
    return None


@functools.cache
def _required(interpreter: Path) -> frozenset[str]:
    """What pytest and coverage require there, and what that requires."""
    installed: Mapping[str, list[str]] = json.loads(_said(interpreter, _INSTALLED))
    requires = {canonicalize_name(name): lines for name, lines in installed.items() if name}
    found: set[str] = set()
    waiting = [canonicalize_name(name) for name in _ROOTS]
    while waiting:
        name = waiting.pop()
        if name in requires and name not in found:
            found.add(name)
            waiting += [canonicalize_name(one.name) for line in requires[name] if (one := _always(line))]
    return frozenset(found)


def _always(line: str) -> Requirement | None:
    try:
        read = Requirement(line)
        return read if read.marker is None or read.marker.evaluate({"extra": ""}) else None
    except InvalidRequirement:
        return None


@functools.cache
def _loaded() -> frozenset[str]:
    """What is there once the runner is, its part inside the sandbox included."""
    own = Path(sys.executable)
    offered = {
        package
        for package, owners in importlib.metadata.packages_distributions().items()
        if any(canonicalize_name(owner) in _required(own) for owner in owners)
    }
    return frozenset({"inside", "conftest", *offered, *json.loads(_said(own, _LOADED))})


def _said(interpreter: Path, question: str) -> str:
    argv = [str(interpreter), "-I", "-c", question]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd="/", check=True).stdout
