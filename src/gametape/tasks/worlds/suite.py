"""A suite of worlds on disk: `suite.json` lists files, each with the spec of one world."""

import json
from itertools import islice
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import ValidationError

from gametape.core.base_model import StrictModel
from gametape.core.errors import BadInput
from gametape.core.validation import problems_from
from gametape.tasks.worlds.spec import MEMORY_PRESET, WorldSpec, preset, spec_stream
from gametape.tasks.worlds.world import World

SUITE_FILE = "suite.json"
_NAMED = "worlds:"
_MOST = 100_000
Data = TypeVar("Data", bound=StrictModel)


class WorldSuite(StrictModel):
    """The content of `suite.json`. `worlds` are files beside it."""

    schema_version: Literal["worlds-v1"] = "worlds-v1"
    spec: WorldSpec
    """The spec that all of them were drawn from; its seed is the stream's."""
    worlds: list[str]


def make_suite(directory: Path, spec: WorldSpec, count: int) -> list[Path]:
    """Write the first `count` worlds of the stream of `spec.seed` into a new or empty directory."""
    if not 1 <= count <= _MOST:
        raise BadInput(f"the number of worlds must be from 1 to {_MOST:,}, not {count}")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise BadInput(f"{directory} is not empty; give a new directory")
        paths = [directory / f"world-{number:05}.json" for number in range(1, count + 1)]
        for path, drawn in zip(paths, islice(spec_stream(spec, spec.seed), count), strict=True):
            path.write_text(drawn.model_dump_json() + "\n", encoding="utf-8")
        suite = WorldSuite(spec=spec, worlds=[path.name for path in paths])
        (directory / SUITE_FILE).write_text(suite.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{directory}: cannot be written: {error.strerror}") from error
    return paths


def load_suite(directory: Path) -> list[World]:
    """The worlds of a suite in their order. Raises `BadInput` if it is not a suite."""
    suite = _read(directory / SUITE_FILE, WorldSuite)
    if escaping := [name for name in suite.worlds if Path(name).name != name]:
        raise BadInput(f"{directory / SUITE_FILE}: worlds are files beside it, not {escaping[0][:80]!r}")
    return [World(_read(directory / name, WorldSpec)) for name in suite.worlds]


def is_suite(directory: Path) -> bool:
    return (directory / SUITE_FILE).is_file()


def preset_worlds(name: str, count: int, seed: int = 0) -> list[World]:
    """The first worlds of a preset's stream, by a name such as `worlds:moderate`."""
    if name.removeprefix(_NAMED) == MEMORY_PRESET:
        raise BadInput(f"{name}: these are pairs of episodes, for `gametape train`; take other worlds")
    spec = preset(name.removeprefix(_NAMED))
    return [World(drawn) for drawn in islice(spec_stream(spec, seed), count)]


def _read(path: Path, kind: type[Data]) -> Data:
    try:
        text = path.read_text(encoding="utf-8")
        return kind.model_validate_json(text)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise BadInput(f"{path}: {problems_from(error, _document(text))[0]}") from error
    except ValueError as error:
        raise BadInput(f"{path}: not UTF-8 text") from error


def _document(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
