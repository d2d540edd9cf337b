"""Programs, modules and commands that the test process runs in the worker's sandbox."""

from __future__ import annotations

import importlib.metadata
import os
import runpy
import shutil
import subprocess
import sys
from typing import Any

_MOST_OUTPUT = 4 << 20
_MOST_SECONDS = 60.0


def run_program(
    roots: list[str],
    arguments: Any,
    data: bytes,
    environment: dict[str, str] | None,
    directory: str | None,
    seconds: float | None,
) -> tuple[int | None, bytes, bytes]:
    """Exit status (None after `seconds`), output and errors. A Python program finds the code under test."""
    variables = dict(os.environ if environment is None else environment)
    variables["PYTHONPATH"] = os.pathsep.join([*roots, *filter(None, [variables.get("PYTHONPATH")])])
    variables["PYTHONDONTWRITEBYTECODE"] = "1"
    is_text = isinstance(arguments, str)
    try:
        done = subprocess.run(
            arguments if is_text else _found(arguments, variables),
            input=data,
            capture_output=True,
            env=variables,
            cwd=directory,
            timeout=min(seconds or _MOST_SECONDS, _MOST_SECONDS),
            shell=is_text,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return None, (late.stdout or b"")[:_MOST_OUTPUT], (late.stderr or b"")[:_MOST_OUTPUT]
    return done.returncode, done.stdout[:_MOST_OUTPUT], done.stderr[:_MOST_OUTPUT]


def _found(arguments: list[str], variables: dict[str, str]) -> list[str]:
    """The command line, where a console script that is not installed is run from its entry point."""
    program, *rest = arguments
    if shutil.which(program, path=variables.get("PATH")) is not None:
        return arguments
    for entry in importlib.metadata.entry_points(group="console_scripts"):
        if entry.name == os.path.basename(program):
            start = f"import sys; sys.argv[0] = {entry.name!r}; from {entry.module} import {entry.attr.split('.')[0]}"
            return [sys.executable, "-c", f"{start}; sys.exit({entry.attr}())", *rest]
    return arguments


def run_module(name: str, run_name: str | None) -> dict[str, Any]:
    """Run a module as a program in this process. The names that it leaves behind stay here."""
    runpy.run_module(name, run_name=run_name, alter_sys=True)
    return {}


def invoke(command: Any, arguments: Any, keywords: dict[str, Any], of_runner: dict[str, Any]) -> dict[str, Any]:
    """Invoke a command by click's runner (typer's, for an application of it): the fields of the result."""
    if type(command).__module__.partition(".")[0] == "typer":
        testing = importlib.import_module("typer.testing")
    else:
        testing = importlib.import_module("click.testing")
    result = testing.CliRunner(**of_runner).invoke(command, arguments, **keywords)
    fields = {
        name: getattr(result, name)
        for name in ("stdout_bytes", "stderr_bytes", "output_bytes", "exit_code")
        if hasattr(result, name)
    }
    has_exited = isinstance(result.exception, SystemExit)
    return {
        **fields,
        "return_value": None,
        "exception": None if has_exited else result.exception,
        "has_exited": has_exited,
    }
