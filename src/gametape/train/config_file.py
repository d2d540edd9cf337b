"""A run's configuration from a TOML file and `--set`. An error names the line of the file."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import BaseModel, ValidationError

from gametape.core.config import RunConfig
from gametape.core.config_document import OLD_KEYS, current_key, with_current_keys
from gametape.core.errors import BadInput
from gametape.core.validation import NO_SUCH_FIELD, Problem, problems_from

_TABLE = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\-\" ]+?)\s*=")


def read_config(path: Path | None, settings: Iterable[str] = (), options: Mapping[str, Any] | None = None) -> RunConfig:
    """`settings` are `key.path=value`, as TOML; a value that is no TOML is taken as text. `options` are settings that
    have an option of their own, such as `--model`: they count more than the file and less than `settings`. Without a
    file everything else has its default."""
    text = _read_text(path) if path else ""
    options = options or {}
    try:
        document = with_current_keys(tomllib.loads(text))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not TOML: {error}") from error
    overrides = dict(_parse_setting(setting) for setting in settings)
    for key, value in [*options.items(), *overrides.items()]:
        _set_value(document, key.split("."), value)
    try:
        return RunConfig.model_validate(document)
    except ValidationError as error:
        problem = problems_from(error, document)[0]
        where = "--set" if problem.path in overrides else f"--{problem.path}" if problem.path in options else ""
        raise BadInput(f"{where or _where(path, text, problem.path)}: {_described(problem)}") from error


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8: byte {error.start}") from error


def config_from_mapping(document: Mapping[str, Any]) -> RunConfig:
    """The configuration that a mapping with the same keys gives."""
    try:
        return RunConfig.model_validate(document)
    except ValidationError as error:
        raise BadInput(f"config: {_described(problems_from(error, with_current_keys(document))[0])}") from None


def config_to_toml(config: RunConfig) -> str:
    """The whole configuration as TOML, defaults included."""
    try:
        return tomli_w.dumps(config.model_dump(mode="json", exclude_none=True))
    except TypeError as error:
        raise BadInput(f"algorithm: a value that TOML cannot hold: {error}") from None


def default_config_toml() -> str:
    """Every option with its default and a comment, as a file to start from."""
    return _commented_table(RunConfig(arm="rlvr", tasks="worlds:moderate"))


def _parse_setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", key.strip()):
        raise BadInput(f"--set {text}: expected KEY=VALUE, such as rl.groups=4")
    key = ".".join(_current(key.strip().split(".")))
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
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


def _where(path: Path | None, text: str, key_path: str) -> str:
    if path is None:
        return "settings"
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


def _described(problem: Problem) -> str:
    """The problem; for a setting that does not exist, the nearest name and those there are."""
    if problem.expected != NO_SUCH_FIELD:
        return str(problem)
    model: type[BaseModel] = RunConfig
    tables: list[str] = []
    for part in problem.path.split("."):
        field = model.model_fields.get(part)
        if field is None:
            return f"{problem.path}: there is no such setting{_known_names(part, '.'.join(tables), model)}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            model = field.annotation
            tables.append(part)
    return str(problem)


def _known_names(wrong: str, table: str, model: type[BaseModel]) -> str:
    """The near name, in this table or another, and all names of the table."""
    prefix = f"{table}." if table else ""
    own = {name: f"{prefix}{name}" for name in model.model_fields}
    own |= {old: f"{prefix}{new}" for old, new in OLD_KEYS.get(table, {}).items()}
    near = get_close_matches(wrong, own, n=1)
    meant = [own[near[0]]] if near else [path for path, name in _every_setting() if name == wrong]
    hint = f"; did you mean {' or '.join(meant)}?" if meant else ""
    return f"{hint} (there are: {', '.join(model.model_fields)})"


def _every_setting() -> Iterable[tuple[str, str]]:
    """The path and the last name of each setting."""
    for name, field in RunConfig.model_fields.items():
        yield name, name
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from ((f"{name}.{inner}", inner) for inner in field.annotation.model_fields)


def _commented_table(config: BaseModel, name: str = "") -> str:
    """A table with the description of each setting above it; what has no value is written as a comment."""
    lines, tables = [], []
    for key, field in type(config).model_fields.items():
        value = getattr(config, key)
        if isinstance(value, BaseModel):
            tables.append(_commented_table(value, key))
            continue
        if field.description:
            lines.append(f"# {' '.join(field.description.split())}")
        if value is None or value == {}:
            lines.append(f"# {key} = (none)")
        else:
            lines.append(tomli_w.dumps({key: value}).rstrip("\n"))
    about = (type(config).__doc__ or "").strip().splitlines()
    heading = ([f"# {about[0]}"] if name and about else []) + ([f"[{name}]"] if name else [])
    return "\n".join([*heading, *lines, "", *tables])
