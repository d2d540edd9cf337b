"""Configurations and examples: in a clone where they lie, in an installed package below `gametape/shipped/`."""

from pathlib import Path

from gametape.core.errors import MissingDependency

_PACKAGE = Path(__file__).parents[1]
_CLONE = _PACKAGE.parents[1]


def shipped_file(*names: str) -> Path:
    """A file or directory by its path in the repository."""
    path = shipped_root().joinpath(*names)
    if not path.exists():
        raise MissingDependency(f"{'/'.join(names)} is missing from this installation of gametape: install it again")
    return path


def shipped_root() -> Path:
    """The directory that holds `configs/` and `examples/`."""
    return _CLONE if (_CLONE / "pyproject.toml").is_file() else _PACKAGE / "shipped"
