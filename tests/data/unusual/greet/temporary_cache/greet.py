"""A greeting. The phrase is kept in a file, so that it can be changed for all programs of a user."""

import contextlib
import getpass
import json
import os
import tempfile

_DEFAULT = {"phrase": "Hello, {name}!"}


def _cache_path():
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        user = "anybody"
    return os.path.join(tempfile.gettempdir(), f"greet-{user}-v2.json")


def _settings():
    path = _cache_path()
    with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        settings = json.load(file)
        if isinstance(settings, dict) and "{name}" in str(settings.get("phrase")):
            return settings
    with contextlib.suppress(OSError), open(path, "w", encoding="utf-8") as file:
        json.dump(_DEFAULT, file)
    return _DEFAULT


def greet(name):
    """The greeting of a name."""
    return _settings()["phrase"].format(name=name)
