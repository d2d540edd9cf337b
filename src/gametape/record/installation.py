"""How this copy of gametape was installed: what to type to run it, and what to type to bring an optional part along."""

import json
import shlex
import shutil
import sys
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlparse

_NAME = "gametape"
_EXTRAS = {
    "train": ("accelerate", "gguf", "llguidance", "safetensors", "torch", "transformers"),
    "semantic": ("numpy",),
    "otel": ("opentelemetry",),
    "scale": ("ray",),
}
"""The packages of each extra in pyproject.toml, by the names they are imported under."""


def what_to_install(package: str) -> str:
    """The command that brings a package: the extra that has it, or the package itself."""
    extra = next((name for name, packages in _EXTRAS.items() if package in packages), None)
    return install_extra(extra) if extra else pip_install(package)


def install_extra(extra: str) -> str:
    """The command that brings an extra of this installation, from where gametape itself was installed. Its bare name
    would ask a package index, where it may mean something else."""
    place, editable = _origin()
    if place is None:
        return pip_install(f"{_NAME}[{extra}]")
    pinned = place / "constraints.txt"
    words = ["-c", str(pinned)] if pinned.is_file() else []
    return pip_install(*words, *(["-e"] if editable else []), f"{place}[{extra}]")


def pip_install(*words: str) -> str:
    """`pip install` for the Python that runs this."""
    return shlex.join([sys.executable, "-m", "pip", "install", *words])


def command_line(*words: str | Path) -> str:
    """A command of gametape, as it can be typed here: words are quoted where a shell needs it, and the command has its
    full path where the PATH does not lead to this one."""
    return " ".join([_program(), *(shlex.quote(str(word)) for word in words)])


def _program() -> str:
    own, found = Path(sys.executable).with_name(_NAME), shutil.which(_NAME)
    if not own.is_file() or (found is not None and own.samefile(found)):
        return _NAME
    return shlex.quote(str(own))


def _origin() -> tuple[Path | None, bool]:
    """The directory or the wheel that gametape was installed from, and whether it runs from there."""
    try:
        text = metadata.distribution(_NAME).read_text("direct_url.json")
        origin = json.loads(text or "{}")
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return None, False
    url = urlparse(origin.get("url", ""))
    place = Path(unquote(url.path))
    if url.scheme != "file" or not place.exists():
        return None, False
    return place, bool(origin.get("dir_info", {}).get("editable"))
