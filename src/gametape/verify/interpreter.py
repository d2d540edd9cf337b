"""Another Python than gametape's own: what must be shown of it, and what pytest plugins it brings."""

import functools
import json
import subprocess
from pathlib import Path

from gametape.core.errors import BadInput

_ASK = """
import importlib.metadata, json, sys
plugins = sorted({entry.name for entry in importlib.metadata.entry_points(group="pytest11")})
print(json.dumps({"prefixes": [sys.base_prefix, sys.prefix], "plugins": plugins, "version": sys.version.split()[0]}))
"""


@functools.cache
def _ask(interpreter: Path) -> dict[str, list[str]]:
    try:
        done = subprocess.run([interpreter, "-I", "-c", _ASK], capture_output=True, text=True, timeout=60, check=True)
        answer: dict[str, list[str]] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise BadInput(f"{interpreter} is not a Python that can be run: {error}") from error
    return answer


def prefixes(interpreter: Path) -> tuple[str, ...]:
    """The directories it lives in. What lies in /usr is shown anyway."""
    return tuple(path for path in dict.fromkeys(_ask(interpreter)["prefixes"]) if not f"{path}/".startswith("/usr/"))


def plugins(interpreter: Path | None) -> tuple[str, ...]:
    """The pytest plugins installed there, by entry point; gametape's own interpreter brings none."""
    return tuple(_ask(interpreter)["plugins"]) if interpreter else ()
