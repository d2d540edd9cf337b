"""Run a module of the tests as an ordinary user: no root, no control groups.

A root test run copies the package to where others can read it and starts one process as such a user.
"""

import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import gametape
from tests.patience import HANG

USER = 61000
_NEEDED = ("h11", "pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection")
_TESTS = Path(__file__).resolve().parents[1]


def run_as_ordinary_user(module: str, question: Any, timeout: float = HANG) -> Any:
    """Start `module` with a JSON question on its input, and return the JSON on the last line of its output."""
    interpreter = _interpreter()
    top = Path(tempfile.mkdtemp(prefix="gametape-ordinary-"))
    top.chmod(0o755)
    try:
        _copy_package(top)
        other: dict[str, Any] = {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {}
        done = subprocess.run(
            [interpreter, "-B", "-m", module],
            input=json.dumps(question),
            cwd=top,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(top), "LANG": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            **other,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])
    finally:
        shutil.rmtree(top, ignore_errors=True)


def _open_to_others(program: str) -> bool:
    path = Path(program).resolve()
    return all(place.stat().st_mode & stat.S_IXOTH for place in (path, *path.parents))


def _interpreter() -> str:
    """One that an ordinary user can start, and that can load what is installed here."""
    if os.geteuid() != 0 or (_open_to_others(sys.executable) and _open_to_others(sys.prefix)):
        return sys.executable
    system = "/usr/bin/python3"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = ""
    if Path(system).exists():
        asked = [system, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    if found != version:
        pytest.skip(f"{sys.executable} is closed to others and {system} is {found or 'not there'}, not {version}")
    return system


def _copy_package(to: Path) -> None:
    shutil.copytree(Path(gametape.__file__).parent, to / "gametape", ignore=shutil.ignore_patterns("__pycache__"))
    (to / "tests").mkdir()
    (to / "tests" / "__init__.py").touch()
    shutil.copy(_TESTS / "patience.py", to / "tests")
    shutil.copytree(_TESTS / "sandbox", to / "tests" / "sandbox", ignore=shutil.ignore_patterns("__pycache__"))
    for name in _NEEDED:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue  # a version of pydantic that does without it
        origin = Path(spec.origin)
        if origin.name == "__init__.py":
            shutil.copytree(origin.parent, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, to / origin.name)
    subprocess.run(["chmod", "-R", "a+rX", to], check=True)
