"""The first program of a sandbox for the agent's code in split mode: forks one worker per test file.

A worker is ended when the test process at the other end closes the connection.
"""

import os
import socket
import sys
from typing import Any

from . import audit_hook, worker
from .child_output import make_writers
from .supervisor import ChildSupervisor
from .workspace_files import WORKSPACE, in_workspace


def main() -> None:
    ChildSupervisor().work(_serve, serves=True)


def _serve(job: dict[str, Any], _step: dict[str, Any], out: int, connection: int | None) -> None:
    assert connection is not None
    serve_connection(job, out, connection)


def serve_connection(job: dict[str, Any], out: int, connection: int) -> None:
    """Answer requests until the connection ends, and report events of the code."""
    os.chdir(WORKSPACE)
    sys.path[:0] = [in_workspace(root) for root in job["import_roots"]]
    sys.dont_write_bytecode = True
    _, tell_event = make_writers(out)
    audit_hook.install_audit_hook(tell_event, [in_workspace(path) for path in job["source_paths"]])
    worker.serve(socket.socket(fileno=connection))
    os._exit(0)


if __name__ == "__main__":
    main()
