"""Ask a user's interpreter what is installed there, without importing any of it."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from gametape.core.errors import MissingDependency
from gametape.verify.interpreter import installed_pytest_plugins

_QUESTION = """
import importlib.machinery, importlib.metadata, importlib.util, json, sys
def place(name):
    top, *below = name.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return "loaded at the start"
    for index, _ in enumerate(below):
        if spec is None or spec.submodule_search_locations is None:
            return None
        full = ".".join([top, *below[:index + 1]])
        spec = importlib.machinery.PathFinder.find_spec(full, spec.submodule_search_locations)
    return None if spec is None else str(spec.origin or [*(spec.submodule_search_locations or ["?"])][0])
installed = {one.metadata["Name"]: one.version for one in importlib.metadata.distributions() if one.metadata["Name"]}
found = [[name, where] for name in json.loads(sys.argv[1]) if (where := place(name))]
lacks = [one for one in ("pytest", "coverage") if one not in installed]
print(json.dumps({"found": found, "installed": installed, "lacks": lacks}))
"""


@dataclass(frozen=True)
class InterpreterReport:
    interpreter: Path
    dependencies: tuple[str, ...]
    """Pins of everything installed there."""
    importable: tuple[tuple[str, str], ...]
    """Those of the requested names that can be imported, each with its location."""


def probe_interpreter(interpreter: Path, names: tuple[str, ...]) -> InterpreterReport:
    """Raises `BadInput` if it cannot be run, `MissingDependency` if it has no pytest or no coverage."""
    python = interpreter.absolute()
    installed_pytest_plugins(python)
    done = subprocess.run(
        [python, "-I", "-c", _QUESTION, json.dumps(names)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd="/",
        check=True,
    )
    answer = json.loads(done.stdout)
    if lacks := answer["lacks"]:
        raise MissingDependency(f"{python} has no {' and no '.join(lacks)}; {python} -m pip install {' '.join(lacks)}")
    pins = sorted(f"{name}=={version}" for name, version in answer["installed"].items())
    return InterpreterReport(python, tuple(pins), tuple((name, location) for name, location in answer["found"]))
