"""Another Python than gametape's own: what must be shown of it and what not, and what pytest plugins it brings."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput
from gametape.sandbox.mounts import interpreter_directories
from gametape.sandbox.strangers import at_strangers, strangers

_ASK = """
import importlib.metadata, json, site, sys, sysconfig
plugins = sorted({entry.name for entry in importlib.metadata.entry_points(group="pytest11")})
base = {"base": sys.base_prefix, "platbase": sys.base_prefix}
packages = [sysconfig.get_path(name, vars=base) for name in ("purelib", "platlib")]
print(json.dumps({
    "prefixes": [sys.base_prefix, sys.prefix],
    "path": sys.path,
    "base_packages": [*packages, *site.getsitepackages([sys.base_prefix])],
    "wheels": sysconfig.get_path("stdlib") + "/ensurepip/_bundled",
    "plugins": plugins,
    "version": sys.version.split()[0],
}))
"""


@functools.cache
def _ask(interpreter: Path) -> dict[str, Any]:
    try:
        done = subprocess.run([interpreter, "-I", "-c", _ASK], capture_output=True, text=True, timeout=60, check=True)
        answer: dict[str, Any] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise BadInput(f"{interpreter} is not a Python that can be run: {error}") from error
    return answer


def prefixes(interpreter: Path) -> tuple[str, ...]:
    """The directories it lives in. What lies in /usr is shown anyway, unless it is hidden with strangers' code."""
    answer = _ask(interpreter)
    elsewhere = (path for path in answer["prefixes"] if not f"{path}/".startswith("/usr/"))
    own = at_strangers(path for path in (*answer["prefixes"], *answer["path"]) if os.path.exists(path))
    return tuple(dict.fromkeys((*elsewhere, *own)))


def strangers_of(interpreter: Path) -> tuple[str, ...]:
    """What lies in these directories and is no part of it: the packages beside the Python that an environment was made
    from, unless it imports them too, and the wheels that new environments are given."""
    answer = _ask(interpreter)
    places = dict.fromkeys((*answer["base_packages"], answer["wheels"]))
    used = [os.path.realpath(path) for path in answer["path"]]
    return tuple(
        place
        for place in places
        if os.path.isdir(place) and not any(f"{path}/".startswith(f"{os.path.realpath(place)}/") for path in used)
    )


def visible_roots(interpreter: Path | None) -> tuple[tuple[str, ...], frozenset[str]]:
    """Where code lies that a task's sandbox shows beside the workspace, and the directories below that it hides.

    Without an interpreter the task runs under gametape's own.
    """
    if interpreter is None:
        own = interpreter_directories()
        outside = (path for path in own if not f"{path}/".startswith("/usr/"))
        return ("/usr", *outside, *at_strangers((*own, *sys.path))), frozenset(strangers())
    others = strangers_of(interpreter)
    return ("/usr", *prefixes(interpreter)), frozenset((*strangers(), *others, *map(os.path.realpath, others)))


def plugins(interpreter: Path | None) -> tuple[str, ...]:
    """The pytest plugins installed there, by entry point; gametape's own interpreter brings none."""
    return tuple(_ask(interpreter)["plugins"]) if interpreter else ()


def python_version(interpreter: Path) -> str:
    """Its version as everybody says it: 3.11."""
    return ".".join(str(_ask(interpreter)["version"]).split(".")[:2])
