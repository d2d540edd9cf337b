"""What the test runner itself needs. A project among these cannot be mined: without its code, no test would run."""

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
    """Why the test runner needs a project with this name and these packages, or None.

    The answer comes from gametape's own interpreter: a built environment gets the same runner, and a given one has
    installed copies of whatever its runner needs.
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
    """The transitive requirements of pytest and coverage."""
    installed = [
        (distribution.metadata["Name"], distribution.requires or [])
        for distribution in importlib.metadata.distributions()
    ]
    requires = {canonicalize_name(name): lines for name, lines in installed if name}
    required: set[str] = set()
    waiting = [canonicalize_name(name) for name in _ROOTS]
    while waiting:
        name = waiting.pop()
        if name in requires and name not in required:
            required.add(name)
            waiting += [
                canonicalize_name(distribution.name) for line in requires[name] if (distribution := _always(line))
            ]
    return frozenset(required)


def _always(line: str) -> Requirement | None:
    try:
        requirement = Requirement(line)
        return requirement if requirement.marker is None or requirement.marker.evaluate({"extra": ""}) else None
    except InvalidRequirement:
        return None


@functools.cache
def _loaded() -> frozenset[str]:
    """Top-level modules that are loaded with the runner, including its part inside the sandbox."""
    offered = {
        package
        for package, owners in importlib.metadata.packages_distributions().items()
        if any(canonicalize_name(owner) in _required() for owner in owners)
    }
    argv = [sys.executable, "-I", "-c", _LOADED]
    output = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd="/", check=True).stdout
    return frozenset({"in_sandbox", "conftest", *offered, *json.loads(output)})
