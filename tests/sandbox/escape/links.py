"""Traps laid in the workspace for the host that reads and writes it from outside."""

import contextlib
import itertools
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.sandbox.backend import Sandbox
from tests.patience import HANG, wait_until
from tests.sandbox.escape.probe import Probe
from tests.sandbox.escape.stage import Stage

FAMILY = "links"
_LAID = "raise Blocked('the trap is laid')"


def _read_back(path: str) -> object:
    """The host fetches a file of the workspace: it may fail, but never bring the host's secret."""

    def after(sandbox: Sandbox, workspace: Path, stage: Stage) -> str | None:
        try:
            content = sandbox.get(path)
        except BadInput:
            return None
        return f"get({path!r}) gave the secret" if stage.secret.encode() in content else None

    return after


def _must_refuse(path: str) -> object:
    def after(sandbox: Sandbox, workspace: Path, stage: Stage) -> str | None:
        done: list[str] = []

        def fetch() -> None:
            try:
                sandbox.get(path)
                done.append("it was read")
            except BadInput:
                done.append("")

        thread = threading.Thread(target=fetch, daemon=True)
        thread.start()
        thread.join(timeout=HANG)
        return (done[0] or None) if done else f"get({path!r}) hangs"

    return after


def _write_through(path: str) -> object:
    """The host writes a file of the workspace: `Stage.harm` sees whether it landed elsewhere."""

    def after(sandbox: Sandbox, workspace: Path, stage: Stage) -> str | None:
        with contextlib.suppress(BadInput):
            sandbox.put(path, b"from the host")
        names = set(os.listdir(stage.outside))
        return f"put({path!r}) wrote outside: {names}" if names != {"secret", "open"} else None

    return after


def _rounds(workspace: Path) -> Iterator[int]:
    """At least 200, over at least a second, so that a busy machine gives both sides their turns."""
    wait_until((workspace / "started").exists, "the start of the swaps")
    end = time.monotonic() + 1
    for number in itertools.count():
        if number >= 200 and time.monotonic() > end:
            return
        yield number


def _race(sandbox: Sandbox, workspace: Path, stage: Stage) -> str | None:
    """Read and write 200 times while the command swaps a directory and a link to the outside."""
    for _ in _rounds(workspace):
        with contextlib.suppress(BadInput, FileExistsError):
            if stage.secret.encode() in sandbox.get("swap/secret"):
                return "a read followed the swapped link"
        with contextlib.suppress(BadInput, FileExistsError):
            sandbox.put("swap/landed", b"x")
        if (stage.outside / "landed").exists():
            (stage.outside / "landed").unlink()
            return "a write followed the swapped link"
    return None


_SWAP = """
import shutil
os.mkdir('/workspace/real')
open('/workspace/real/secret', 'w').write('harmless')
os.symlink(G["outside"], '/workspace/link')
open('/workspace/started', 'w').close()
deadline = time.monotonic() + 600
swaps = 0
while not os.path.exists('/workspace/stop') and time.monotonic() < deadline:
    for name in ('real', 'link'):
        try:
            os.rename('/workspace/' + name, '/workspace/swap')
            os.rename('/workspace/swap', '/workspace/' + name)
            swaps += 1
        except OSError:  # the host made a directory of that name
            shutil.rmtree('/workspace/swap', ignore_errors=True)
need(False, f'{swaps} swaps')
"""

_SWAP_FILE = """
open('/workspace/plain', 'w').write('harmless')
os.symlink(G["secret_file"], '/workspace/link')
open('/workspace/started', 'w').close()
deadline = time.monotonic() + 600
while not os.path.exists('/workspace/stop') and time.monotonic() < deadline:
    for name in ('plain', 'link'):
        os.rename('/workspace/' + name, '/workspace/swap'); os.rename('/workspace/swap', '/workspace/' + name)
need(False, 'the trap is laid')
"""


def _race_file(sandbox: Sandbox, workspace: Path, stage: Stage) -> str | None:
    for _ in _rounds(workspace):
        with contextlib.suppress(BadInput):
            if stage.secret.encode() in sandbox.get("swap"):
                return "a read followed the swapped link"
    return None


def _trap(name: str, body: str, after: object = None, **more: object) -> Probe:
    return Probe(name, FAMILY, body, after=after, **more)  # type: ignore[arg-type]


_SAFE_ANYWAY = "a host that takes no care is not caught by it either, or only by hanging"

PROBES = [
    _trap(
        "link-to-shadow", f"os.symlink('/etc/shadow', '/workspace/f'); {_LAID}", _must_refuse("f"), unshown=_SAFE_ANYWAY
    ),
    _trap("link-to-secret", f'os.symlink(G["secret_file"], "/workspace/f"); {_LAID}', _read_back("f"), naive=True),
    _trap(
        "relative-link-to-secret",
        f'os.symlink("../outside/secret", "/workspace/f"); {_LAID}',
        _read_back("f"),
        naive=True,
    ),
    _trap(
        "linked-directory",
        f'os.symlink(G["outside"], "/workspace/d"); {_LAID}',
        _read_back("d/secret"),
        naive=True,
    ),
    _trap(
        "write-through-link",
        f'os.symlink(G["secret_file"], "/workspace/f"); {_LAID}',
        _write_through("f"),
        naive=True,
    ),
    _trap("write-over-a-directory", f"os.mkdir('/workspace/f'); {_LAID}", _write_through("f"), unshown=_SAFE_ANYWAY),
    _trap(
        "write-through-directory",
        f'os.symlink(G["outside"], "/workspace/d"); {_LAID}',
        _write_through("d/landed"),
        naive=True,
    ),
    _trap(
        "write-through-dangling-link",
        f'os.symlink(G["outside"] + "/landed", "/workspace/f"); {_LAID}',
        _write_through("f"),
        naive=True,
    ),
    _trap(
        "write-through-a-temporary-name",
        f"""
        os.symlink(G["outside"] + '/landed', f'/workspace/.f.{{G["launcher"]}}.new')
        {_LAID}
        """,
        _write_through("f"),
        unshown=_SAFE_ANYWAY,
    ),
    _trap(
        "hard-link-to-host-file",
        'os.link(G["secret_file"], "/workspace/f")',
        _read_back("f"),
        unshown="two mounts are never linked across",
    ),
    _trap("pipe-instead-of-a-file", f"os.mkfifo('/workspace/f'); {_LAID}", _must_refuse("f"), unshown=_SAFE_ANYWAY),
    _trap(
        "socket-instead-of-a-file",
        f"socket.socket(socket.AF_UNIX).bind('/workspace/f'); {_LAID}",
        _must_refuse("f"),
        unshown=_SAFE_ANYWAY,
    ),
    _trap("directory-instead-of-a-file", f"os.mkdir('/workspace/f'); {_LAID}", _must_refuse("f"), unshown=_SAFE_ANYWAY),
    _trap(
        "huge-file",
        f"os.truncate(os.open('/workspace/f', os.O_CREAT | os.O_RDWR), 900 << 20); {_LAID}",
        _must_refuse("f"),
        unshown=_SAFE_ANYWAY,
        limits={"disk_mb": 1024},
    ),
    _trap(
        "closed-file",
        f"open('/workspace/f', 'w').write('x'); os.chmod('/workspace/f', 0); {_LAID}",
        _read_back("f"),
        unshown=_SAFE_ANYWAY,
    ),
    _trap("parent-path", _LAID, _must_refuse("../outside/secret"), naive=True),
    _trap(
        "parent-path-inside",
        "os.mkdir('/workspace/d'); " + _LAID,
        _must_refuse("d/../../outside/secret"),
        naive=True,
    ),
    _trap("absolute-path", _LAID, _must_refuse("/etc/passwd"), naive=True),
    _trap("path-with-nul", _LAID, _must_refuse("own\0/../x"), unshown=_SAFE_ANYWAY),
    _trap("swapped-directory-race", _SWAP, during=_race, naive=True),
    _trap("swapped-file-race", _SWAP_FILE, during=_race_file, naive=True),
]
