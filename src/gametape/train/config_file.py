"""A run's configuration from a TOML file and `--set`. An error names the line of the file."""

import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticUndefined

from gametape.core.config import RunConfig, current_key, with_current_keys
from gametape.core.errors import BadInput
from gametape.core.validation import problems_from

_TABLE = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\-\" ]+?)\s*=")


def read_config(path: Path, settings: Iterable[str] = ()) -> RunConfig:
    """`settings` are `key.path=value`, as TOML; a value that is no TOML is taken as text."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8: byte {error.start}") from error
    try:
        document = with_current_keys(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: not TOML: {error}") from error
    overrides = dict(_parse_setting(setting) for setting in settings)
    for key, value in overrides.items():
        _set_value(document, key.split("."), value)
    try:
        return RunConfig.model_validate(document)
    except ValidationError as error:
        problem = problems_from(error, document)[0]
        raise BadInput(
            f"{_where(path, text, problem.path, overrides)}: {problem}{_known_fields(problem.path)}"
        ) from error


def config_to_toml(config: RunConfig) -> str:
    """The whole configuration as TOML, defaults included."""
    return _table(config, comments=False)


def default_config_toml() -> str:
    """Every option with its default and a comment, as a file to start from."""
    return _table(RunConfig.model_construct(arm="rlvr", tasks="worlds:moderate"), comments=True)


def _parse_setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", key.strip()):
        raise BadInput(f"--set {text}: expected KEY=VALUE, such as rl.groups=4")
    key = ".".join(_current(key.strip().split(".")))
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value.strip()


def _current(keys: Sequence[str]) -> list[str]:
    """A key's path under its current name."""
    return [keys[0], current_key(keys[0], keys[1]), *keys[2:]] if len(keys) > 1 else list(keys)


def _set_value(document: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    *tables, last = keys
    for name in tables:
        document = document.setdefault(name, {})
        if not isinstance(document, dict):
            raise BadInput(f"--set {'.'.join(keys)}: {name} is no table")
    document[last] = value


def _where(path: Path, text: str, key_path: str, overrides: Iterable[str]) -> str:
    if key_path in overrides:
        return "--set"
    line = _line(text, key_path)
    return f"{path}, line {line}" if line else str(path)


def _line(text: str, key_path: str) -> int | None:
    """The line of a key, or of the table that it belongs into."""
    wanted, table, table_line = key_path.split("."), [], None
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _TABLE.match(line):
            table = [part.strip(' "') for part in match[1].split(".")]
            if table == wanted[: len(table)]:
                table_line = number
        elif match := _KEY.match(line):
            keys = _current([*table, *(part.strip(' "') for part in match[1].split("."))])
            if keys == wanted[: len(keys)]:
                return number
    return table_line


def _known_fields(key_path: str) -> str:
    """For a field that does not exist: the fields of its table."""
    model: type[BaseModel] = RunConfig
    for part in key_path.split("."):
        field = model.model_fields.get(part)
        if field is None:
            return f" (there are: {', '.join(model.model_fields)})"
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            model = field.annotation
    return ""


def _table(config: BaseModel, comments: bool, name: str = "") -> str:
    lines, tables = [], []
    for key, field in type(config).model_fields.items():
        value = getattr(config, key, PydanticUndefined)
        if isinstance(value, BaseModel):
            tables.append(_table(value, comments, f"{name}.{key}".lstrip(".")))
            continue
        if isinstance(value, dict):
            tables.append(_free_table(value, key, field.description if comments else None))
            continue
        if comments and field.description:
            lines.append(f"# {' '.join(field.description.split())}")
        lines.append(f"# {key} = (none)" if value is None else f"{key} = {_written(value)}")
    about = (type(config).__doc__ or "").strip().splitlines()
    heading = ([f"# {about[0]}"] if comments and name and about else []) + ([f"[{name}]"] if name else [])
    return "\n".join([*heading, *lines, "", *tables])


def _free_table(values: dict[str, Any], name: str, about: str | None) -> str:
    """A table with any keys; an empty one is written as its description only."""
    heading = [f"# {' '.join(about.split())}"] if about else []
    lines = [f"{json.dumps(key)} = {_written(value)}" for key, value in values.items()]
    return "\n".join([*heading, *([f"[{name}]", *lines] if lines else []), ""])


def _written(value: Any) -> str:
    """The value as TOML. JSON is TOML for all values of a configuration, except for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
