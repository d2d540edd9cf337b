"""The first program of a sandbox for tests: it imports pytest before any of the agent's code is there.

It takes one job, writes the tree into the sandbox's own memory, and forks one process per test file.
"""

import faulthandler  # noqa: F401 - pytest imports this and pdb when it starts; so no child has to
import functools
import os
import pdb  # noqa: F401

from _pytest.config import get_config

from . import pytest_child
from .runner_fingerprint import RunnerFingerprint
from .supervisor import ChildSupervisor


def main() -> None:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    get_config()._ensure_unconfigure()  # imports pytest's own plugins
    fingerprint = RunnerFingerprint()
    ChildSupervisor().work(functools.partial(pytest_child.run_file, fingerprint))


if __name__ == "__main__":
    main()
