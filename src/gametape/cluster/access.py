"""What has to be so before Ray is imported: it is there, and only who has the token may talk to a cluster of ours."""

import os
import re
import secrets
import socket
from importlib.util import find_spec

from gametape.core.errors import MissingDependency
from gametape.record.installation import install_extra

LOCAL = "local"
"""The address of a cluster that is started here and ends with the run."""
_SECONDS_TO_CONNECT = 10.0
_MODE, _TOKEN = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"


def prepare_ray(address: str) -> None:
    """Ray reads its settings when it is imported. It listens on every interface of the machine, so that a cluster of
    our own takes a token that nobody else has; whoever set another way keeps it."""
    if find_spec("ray") is None:
        raise MissingDependency(f"--ray needs Ray: {install_extra('scale')}")
    _require_listener(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == LOCAL:
        os.environ.setdefault("RAY_worker_niceness", "0")  # samplers and ranks are the work, not something beside it
        # Ray would kill them as soon as the machine is nearly full, whoever has filled it.
        os.environ.setdefault("RAY_memory_monitor_refresh_ms", "0")
    if address == LOCAL and _MODE not in os.environ:
        os.environ[_MODE] = "token"
        os.environ[_TOKEN] = secrets.token_hex(32)


def _require_listener(address: str) -> None:
    """Ray itself would try for minutes."""
    if place := re.fullmatch(r"(?:ray://)?\[?([\w.:-]+?)\]?:(\d{1,5})", address):
        try:
            socket.create_connection((place[1], int(place[2])), _SECONDS_TO_CONNECT).close()
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise MissingDependency(f"--ray {address}: nobody answers there: {why}") from error
