"""What the test runner itself is made of: a project among it cannot be taken apart while it runs."""

import functools
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

_ROOTS = ("pytest", "coverage")
_LOADED = """
import json, sys
import coverage, pytest, _pytest.config
_pytest.config.get_config()
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def why_runner_needs(name: str, packages: Sequence[str]) -> str | None:
    """Why a project with this name and these packages cannot be taken apart while the runner runs, or None.

    This is asked of gametape's own interpreter: an environment that is built gets the same runner, and in one that is
    given, whatever its runner needs is an installed copy.
    """
    if canonicalize_name(name) in _required():
        return f"the test runner needs {name} itself: with parts of it deleted, no test would run"
    for package in packages:
        if package in sys.stdlib_module_names:
            return f"its package {package} has the name of a module of Python's own library"
        if package in _loaded():
            return f"the test runner imports {package} itself: with parts of it deleted, no test would run"
    return None


@functools.cache
def _required() -> frozenset[str]:
    """What pytest and coverage require, and what that requires."""
    installed = [(one.metadata["Name"], one.requires or []) for one in importlib.metadata.distributions()]
    requires = {canonicalize_name(name): lines for name, lines in installed if name}
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
    offered = {
        package
        for package, owners in importlib.metadata.packages_distributions().items()
        if any(canonicalize_name(owner) in _required() for owner in owners)
    }
    argv = [sys.executable, "-I", "-c", _LOADED]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd="/", check=True).stdout
    return frozenset({"in_sandbox", "conftest", *offered, *json.loads(said)})
