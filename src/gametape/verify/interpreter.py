"""A task's own Python interpreter: which of its directories a sandbox shows or hides, and its pytest plugins."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput
from gametape.sandbox.mounts import interpreter_directories
from gametape.sandbox.third_party_python import inside_third_party, third_party_directories

_INSPECT_SCRIPT = """
import importlib.metadata, json, os, site, sys, sysconfig
path, prefix, environment = [*sys.path], sys.prefix, sys.argv[1] if len(sys.argv) > 1 else None
base = {"base": sys.base_prefix, "platbase": sys.base_prefix}
packages = [sysconfig.get_path(name, vars=base) for name in ("purelib", "platlib")]
packages += site.getsitepackages([sys.base_prefix])
offered = importlib.metadata.distributions()
if environment:
    prefix = environment
    own = f"{environment}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    path.append(own)
    with open(f"{environment}/pyvenv.cfg", errors="replace") as settings:
        if "include-system-site-packages=true" in settings.read().lower().replace(" ", "").splitlines():
            path += packages
    for name in sorted(os.listdir(own) if os.path.isdir(own) else ()):
        if name.endswith(".pth"):
            with open(f"{own}/{name}", errors="replace") as lines:
                path += [os.path.join(own, line.strip()) for line in lines if not line.startswith(("import", "#"))]
    offered = importlib.metadata.distributions(path=[directory for directory in path if os.path.isdir(directory)])
plugins = sorted({entry.name for package in offered for entry in package.entry_points if entry.group == "pytest11"})
print(json.dumps({
    "prefixes": [sys.base_prefix, prefix],
    "path": path,
    "base_packages": packages,
    "wheels": sysconfig.get_path("stdlib") + "/ensurepip/_bundled",
    "plugins": plugins,
    "version": sys.version.split()[0],
}))
"""


@functools.cache
def _inspect(interpreter: Path) -> dict[str, Any]:
    """What the interpreter says about itself.

    A virtual environment is read, not run, by the Python that it was made from: its packages may be hostile, and a
    `.pth` file or a `sitecustomize` of theirs would run here, outside of every sandbox.
    """
    environment, real = interpreter.parent.parent, Path(os.path.realpath(interpreter))
    read = (environment / "pyvenv.cfg").is_file() and not real.is_relative_to(os.path.realpath(environment))
    options = ("-I", "-S", "-c", _INSPECT_SCRIPT, str(environment)) if read else ("-I", "-c", _INSPECT_SCRIPT)
    try:
        done = subprocess.run(
            [real if read else interpreter, *options], capture_output=True, text=True, timeout=60, check=True
        )
        answer: dict[str, Any] = json.loads(done.stdout)
    except OSError as error:
        raise BadInput(f"{interpreter} is not a Python that can be run: {error.strerror}") from error
    except (subprocess.SubprocessError, ValueError) as error:
        raise BadInput(f"{interpreter} is not a Python: it does not say what it is") from error
    return answer


def interpreter_prefixes(interpreter: Path) -> tuple[str, ...]:
    """The interpreter's directories. Those in /usr are shown anyway, unless they are hidden as third-party code."""
    answer = _inspect(interpreter)
    elsewhere = (path for path in answer["prefixes"] if not f"{path}/".startswith("/usr/"))
    own = inside_third_party(path for path in (*answer["prefixes"], *answer["path"]) if os.path.exists(path))
    return tuple(dict.fromkeys((*elsewhere, *own)))


def hidden_packages(interpreter: Path) -> tuple[str, ...]:
    """Directories below the prefixes that the interpreter does not use: the packages of the Python that an environment
    was made from, unless the environment imports them too, and the bundled wheels of `ensurepip`."""
    answer = _inspect(interpreter)
    directories = dict.fromkeys((*answer["base_packages"], answer["wheels"]))
    used = [os.path.realpath(path) for path in answer["path"]]
    return tuple(
        directory
        for directory in directories
        if os.path.isdir(directory)
        and not any(f"{path}/".startswith(f"{os.path.realpath(directory)}/") for path in used)
    )


def visible_roots(interpreter: Path | None) -> tuple[tuple[str, ...], frozenset[str]]:
    """The directories of code that a task's sandbox shows beside the workspace, and those below them that it hides.

    Without an interpreter the task runs under gametape's own.
    """
    if interpreter is None:
        own = interpreter_directories()
        outside = (path for path in own if not f"{path}/".startswith("/usr/"))
        return ("/usr", *outside, *inside_third_party((*own, *sys.path))), frozenset(third_party_directories())
    others = hidden_packages(interpreter)
    return ("/usr", *interpreter_prefixes(interpreter)), frozenset(
        (*third_party_directories(), *others, *map(os.path.realpath, others))
    )


def installed_pytest_plugins(interpreter: Path | None) -> tuple[str, ...]:
    """The pytest plugins installed there, by entry point; none for gametape's own interpreter."""
    return tuple(_inspect(interpreter)["plugins"]) if interpreter else ()


def python_version(interpreter: Path) -> str:
    """Major and minor version, such as 3.11."""
    return ".".join(str(_inspect(interpreter)["version"]).split(".")[:2])
