"""Reads the configuration files of a person and of a workspace. Every mistake is one line: file, key, known keys.

The person's file is `$GAMETAPE_CONFIG`, else `config.toml` below `$XDG_CONFIG_HOME/gametape` or `~/.config/gametape`.
A workspace's is `WORKSPACE/.gametape/config.toml`. A stranger may have written that one: no link is followed to it.
"""

import difflib
import errno
import os
import stat
import tomllib
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from gametape.core.errors import BadInput
from gametape.core.user_config import UserConfig, WorkspaceConfig
from gametape.core.validation import format_location, problems_from
from gametape.record.errors import printable_path, read_error

MAX_BYTES = 64 * 1024
WORKSPACE_FILE = Path(".gametape", "config.toml")
_USER_ONLY = ("models", "providers", "local_only")
_Config = TypeVar("_Config", bound=WorkspaceConfig)


def user_config_file() -> Path:
    """Where the person's file is, or would be."""
    if named := os.environ.get("GAMETAPE_CONFIG"):
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if os.path.isabs(base) else _home() / ".config") / "gametape" / "config.toml"


def read_user_config() -> UserConfig:
    """The person's configuration; empty where there is no file. A file that $GAMETAPE_CONFIG names has to be there."""
    file = user_config_file()
    try:
        return parse_config(_read(file, None), file, UserConfig)
    except FileNotFoundError:
        if os.environ.get("GAMETAPE_CONFIG"):
            raise BadInput(f"{printable_path(file)}: no such file, but $GAMETAPE_CONFIG names it") from None
        return UserConfig()


def read_workspace_config(workspace: Path) -> WorkspaceConfig:
    """The configuration that comes with a workspace; empty where it has none."""
    file = workspace.absolute() / WORKSPACE_FILE
    try:
        directory = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        if file.parent.is_symlink():
            raise _link(file.parent) from None
        return WorkspaceConfig()
    except OSError as error:
        raise _link(file.parent) if error.errno == errno.ELOOP else read_error(file.parent, error) from None
    try:
        return parse_config(_read(file, directory), file, WorkspaceConfig)
    except FileNotFoundError:
        return WorkspaceConfig()
    finally:
        os.close(directory)


def parse_config(data: bytes, file: Path, kind: type[_Config]) -> _Config:
    """The configuration in the content of a file."""
    where = printable_path(file)
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput(f"{where}: not a text file: byte {error.start} is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where}: not TOML: {str(error).splitlines()[0]}") from None
    if kind is WorkspaceConfig:
        for key in _USER_ONLY:
            if key in document:
                raise BadInput(f"{where}: {key}: a workspace cannot set this; put it into {user_config_file()}")
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise BadInput(f"{where}: {_explain(error, document, kind)}") from None


def _explain(error: ValidationError, document: dict[str, Any], kind: type[BaseModel]) -> str:
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        if fault["type"] == "extra_forbidden":
            *table, key = fault["loc"]
            known = _known_keys(kind, table)
            near = difflib.get_close_matches(str(key), known, 1)
            meant = f"did you mean {near[0]}? " if near else ""
            return f"{format_location(fault['loc'])}: no such key; {meant}known: {', '.join(known)}"
    problem = problems_from(error, document)[0]
    return str(problem)


def _known_keys(kind: type[BaseModel], table: list[str | int]) -> list[str]:
    """The keys of a table of the file."""
    here: Any = kind
    for part in table:
        inside = get_args(here)[1] if get_origin(here) is dict else here.model_fields[str(part)].annotation
        here = get_args(inside)[0] if NoneType in get_args(inside) else inside
    return list(here.model_fields)


def _read(file: Path, directory: int | None) -> bytes:
    """The content of a regular file of at most `MAX_BYTES`. With `directory`, links are refused. Never waits for a
    pipe."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_NOFOLLOW if directory is not None else 0)
    try:
        fd = os.open(file if directory is None else file.name, flags, dir_fd=directory)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(file) from None
    except OSError as error:
        raise _link(file) if error.errno == errno.ELOOP else read_error(file, error) from None
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            what = "a directory" if stat.S_ISDIR(mode) else "no regular file"
            raise BadInput(f"{printable_path(file)}: {what}; expected a TOML file")
        with open(fd, "rb", closefd=False) as opened:
            data = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise read_error(file, error) from None
    finally:
        os.close(fd)
    if len(data) > MAX_BYTES:
        raise BadInput(f"{printable_path(file)}: larger than {MAX_BYTES // 1024} KiB; expected a short TOML file")
    return data


def _link(path: Path) -> BadInput:
    return BadInput(f"{printable_path(path)}: a symbolic link, which is not followed")


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")
