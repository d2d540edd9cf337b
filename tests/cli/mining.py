"""`gametape mine`, and a place for what it is given."""

from collections.abc import Mapping
from pathlib import Path

from ..tasks.mining.made import tree_of
from .command import Ran, run


def mine(*words: str | Path, home: Path) -> Ran:
    return run("mine", *words, "--home", home, "--json")


def laid(directory: Path, files: Mapping[str, str]) -> Path:
    directory.mkdir(exist_ok=True)
    tree_of(files).write_to(directory)
    return directory
