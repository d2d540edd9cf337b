"""Debian's PostgreSQL in a directory of its own, reached by a socket there and by nothing else."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def running_postgres() -> Iterator[str]:
    """The URL of a database on a server that ends with the block; skips where PostgreSQL is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    binaries = found[-1].parent
    owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    as_owner = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    root = Path(tempfile.mkdtemp(prefix="gametape-postgres-"))
    os.chown(root, owner.pw_uid, owner.pw_gid)
    data = root / "data"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "cwd": root, **as_owner}
    control = [binaries / "pg_ctl", "-D", data, "-w", "-l", root / "log"]
    try:
        subprocess.run(
            [binaries / "initdb", "-D", data, "-U", "desk", "-A", "trust", "-E", "UTF8"], check=True, **quiet
        )
        subprocess.run([*control, "-o", f"-k {root} -c listen_addresses=''", "start"], check=True, **quiet)
        try:
            yield f"postgresql://desk@/desk?host={root}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=True, **quiet)
    finally:
        shutil.rmtree(root, ignore_errors=True)
