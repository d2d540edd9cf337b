"""Loads a sandbox policy from a file. Errors are one line."""

import json
import tomllib
from pathlib import Path

from pydantic import ValidationError

from gametape.core.errors import BadInput
from gametape.sandbox.policy import SECRET_PATHS, SandboxPolicy


def load_policy(path: Path | None) -> SandboxPolicy:
    """The policy in a TOML or JSON file. Paths of secrets are watched unless the file says otherwise."""
    if path is None:
        return SandboxPolicy(watched=SECRET_PATHS)
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not {'JSON' if path.suffix == '.json' else 'TOML'}: {error}") from error
    if isinstance(data, dict):
        data.setdefault("watched", SECRET_PATHS)
    try:
        return SandboxPolicy.model_validate(data)
    except ValidationError as error:
        raise BadInput(f"{path}: {first_error(error)}") from error


def first_error(error: ValueError) -> str:
    """Where the first mistake is and what was expected, in one line."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    location = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"{location}: {message}" if location else message
