"""Server-sent events: what a run's log got since the page was loaded, as it is written.

Every event has the offset in the log as its id, so that a browser that lost the connection goes on where it was.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from gametape.record.regular_file import is_regular, open_regular, passed_lines
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
    inode, inside = _inode(log), False
    while not await is_gone():
        inode = inode or _inode(log)
        if not inode and log.parent.is_dir():  # it has not begun to write
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            continue
        found = await asyncio.to_thread(_added, log, offset, inode, inside)
        if found is None:
            kind = "anew" if log.exists() else "gone"
            yield server_event(kind, {})
            return
        rows, offset, inside = found
        if rows:
            quiet = 0
            yield server_event("rows", {"rows": rows, "offset": offset}, offset)
        else:
            quiet += 1
            if quiet % _LOOKS_BETWEEN_PULSES == 1:
                yield b": still here\n\n"
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)


def _added(log: Path, offset: int, inode: int, inside: bool) -> tuple[list[dict[str, Any]], int, bool] | None:
    try:
        with open_regular(log) as file:
            status = os.fstat(file.fileno())
            if status.st_size < offset or status.st_ino != inode:
                return None
            rows = []
            for line, end, goes_on in passed_lines(file, offset, inside, most=_MOST_BYTES):
                offset, inside = end, goes_on
                if line is not None and (row := curve_row(line)) is not None:
                    rows.append(row)
    except OSError:
        return None
    return [row for row in rows if row["kind"] in ("update", "eval", "alarm")], offset, inside


def _inode(log: Path) -> int:
    try:
        return log.stat().st_ino if is_regular(log) else 0
    except OSError:
        return 0
