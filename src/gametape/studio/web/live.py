"""Server-sent events: what a run's log got since the page was loaded, as it is written.

Every event has the offset in the log as its id, so that a browser that lost the connection goes on where it was.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from gametape.studio.web.curves import curve_row

SECONDS_BETWEEN_LOOKS = 0.5
_LOOKS_BETWEEN_PULSES = 20
_MOST_BYTES = 1 << 20


def server_event(kind: str, data: Any, place: int | None = None) -> bytes:
    """One event as it goes over the wire: JSON has no line ends, so it is one line."""
    head = f"id: {place}\n" if place is not None else ""
    return f"{head}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


async def follow_log(log: Path, offset: int, is_gone: Callable[[], Awaitable[bool]]) -> AsyncIterator[bytes]:
    """`rows` for what was added after `offset`; `anew` where the log is shorter than that or another one, so that the
    page has to read it again; `gone` where the run was deleted."""
    quiet = 0
    inode = _inode(log)
    while not await is_gone():
        inode = inode or _inode(log)
        if not inode and log.parent.is_dir():  # it has not begun to write
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            continue
        found = await asyncio.to_thread(_added, log, offset, inode)
        if found is None:
            kind = "anew" if log.exists() else "gone"
            yield server_event(kind, {})
            return
        rows, offset = found
        if rows:
            quiet = 0
            yield server_event("rows", {"rows": rows, "offset": offset}, offset)
        else:
            quiet += 1
            if quiet % _LOOKS_BETWEEN_PULSES == 1:
                yield b": still here\n\n"
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)


def _added(log: Path, offset: int, inode: int) -> tuple[list[dict[str, Any]], int] | None:
    try:
        with log.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_size < offset or status.st_ino != inode:
                return None
            file.seek(offset)
            data = file.read(_MOST_BYTES)
    except OSError:
        return None
    whole = data[: data.rfind(b"\n") + 1]
    rows = [row for line in whole.splitlines() if (row := curve_row(line)) is not None]
    return [row for row in rows if row["kind"] in ("update", "eval", "alarm")], offset + len(whole)


def _inode(log: Path) -> int:
    try:
        return log.stat().st_ino
    except OSError:
        return 0
