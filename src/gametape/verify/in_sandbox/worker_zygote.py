"""The first program of a sandbox for the agent's code in split mode: forks one worker per test file.

A worker is over when the tests at the other end hang up, whatever it thinks of that.
"""

import os
import socket
import sys
from typing import Any

from . import audit_hook, worker
from .child_output import make_writers
from .supervisor import ChildSupervisor
from .workspace_files import WORKSPACE


def main() -> None:
    ChildSupervisor().work(_serve, serves=True)


def _serve(job: dict[str, Any], _step: dict[str, Any], out: int, connection: int | None) -> None:
    assert connection is not None
    os.chdir(WORKSPACE)
    sys.path[:0] = [os.path.normpath(os.path.join(WORKSPACE, root)) for root in job["import_roots"]]
    sys.dont_write_bytecode = True
    _, told = make_writers(out)
    audit_hook.install_audit_hook(
        told, [os.path.normpath(os.path.join(WORKSPACE, path)) for path in job["source_paths"]]
    )
    worker.serve(socket.socket(fileno=connection))
    os._exit(0)


if __name__ == "__main__":
    main()
