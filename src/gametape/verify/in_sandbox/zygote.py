"""The first program of a sandbox for tests: it imports pytest before any of the agent's code is there.

It takes one job, writes the tree into the sandbox's own memory, and forks one process per test file.
"""

import contextlib
import faulthandler  # noqa: F401 - pytest imports this and pdb when it starts; so no child has to
import functools
import os
import pdb  # noqa: F401
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from _pytest.config import get_config

from . import pytest_child, recorded_child
from .runner_fingerprint import RunnerFingerprint
from .supervisor import ChildSupervisor


def main() -> None:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    get_config()._ensure_unconfigure()  # imports pytest's own plugins
    _import_plugins(sys.argv[2:])
    fingerprint = RunnerFingerprint()
    ChildSupervisor().work(functools.partial(_run, fingerprint))


def _run(
    fingerprint: RunnerFingerprint, job: dict[str, Any], step: dict[str, Any], out: int, connection: int | None
) -> None:
    if step["recorded"] and connection is not None:
        recorded_child.record_test(job, step, out, connection)
    else:
        pytest_child.run_file(fingerprint, job, step, out, connection)


def _import_plugins(names: Sequence[str]) -> None:
    """Some replace functions of pytest when they are imported; what they do before hostile code is there is no act of
    that code. One that cannot be imported is for pytest to report."""
    for entry in metadata.entry_points(group="pytest11") if names else ():
        if entry.name in names:
            with contextlib.suppress(Exception):
                entry.load()


if __name__ == "__main__":
    main()
