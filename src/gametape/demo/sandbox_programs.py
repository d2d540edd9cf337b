"""`gametape demo --sandbox`: one harmless and five hostile programs, and what stopped each."""

import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class SandboxProgram:
    """A program. A hostile one prints or writes `GOT ...` if it escapes."""

    title: str
    code: str


HARMLESS = SandboxProgram("counts words in its workspace", "print(len(open('poem.txt').read().split()), 'words')")


def hostile_programs(secret: Path, port: int, outside: Path) -> list[SandboxProgram]:
    return [
        SandboxProgram("reads a host secret", f"print('GOT IT', open({str(secret)!r}).read())"),
        SandboxProgram(
            "opens a socket",
            f"import socket; socket.create_connection(('127.0.0.1', {port})); print('GOT OUT')",
        ),
        SandboxProgram("fork bomb", "import os\nwhile True: os.fork()"),
        SandboxProgram("memory bomb", "x = []\nwhile True: x.append(bytearray(1 << 24))"),
        SandboxProgram("writes outside", f"open({str(outside)!r}, 'w').write('GOT OUT')"),
    ]


def run_programs() -> list[dict[str, Any]]:
    """Prepare a secret, a listening server and a workspace, run every program, and check the host after each."""
    from gametape.sandbox.backend import SandboxSpec, open_backend
    from gametape.sandbox.policy import SandboxLimits, SandboxPolicy

    with (
        tempfile.TemporaryDirectory(prefix="gametape-demo-") as scratch,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        workspace, secret, outside = Path(scratch, "workspace"), Path(scratch, "secret"), Path(scratch, "outside")
        workspace.mkdir()
        (workspace / "poem.txt").write_text("the coach stops the tape at minute 47\n")
        secret.write_text("swordfish")
        policy = SandboxPolicy(limits=SandboxLimits(wall_seconds=20, memory_mb=256, processes=64))
        sandbox = open_backend().start(SandboxSpec(policy=policy, workspace=workspace))
        rows = []
        for program in [HARMLESS, *hostile_programs(secret, server.getsockname()[1], outside)]:
            result = sandbox.exec(["python3", "-c", program.code])
            escaped = "GOT" in result.stdout or outside.exists() or _was_connected(server)
            held = result.ok and not escaped if program is HARMLESS else not result.ok and not escaped
            rows.append(
                {
                    "act": program.title,
                    "held": held,
                    "what": _describe(result),
                    "seconds": result.usage.wall_seconds,
                }
            )
        return rows


def _was_connected(server: socket.socket) -> bool:
    server.settimeout(0)
    try:
        server.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _describe(result: Any) -> str:
    if result.ok:
        return f"worked: {result.stdout.strip()}"
    if result.killed_by:
        return f"ended by its limit on {result.killed_by}, held by {result.held_by[result.killed_by]}"
    if result.violations:
        violation = result.violations[0]
        return f"{violation.action} {violation.syscall}({', '.join(map(str, violation.args))}), recorded"
    reason = result.stderr.strip().splitlines()[-1] if result.stderr.strip() else f"exit code {result.exit_code}"
    return f"the host's files are not there: {reason}" if "FileNotFoundError" in reason else reason


def print_programs(rows: list[dict[str, Any]]) -> None:
    from rich.text import Text

    from gametape.terminal.table import Column, print_table

    cells = [
        (
            row["act"],
            Text("yes", style="green") if row["held"] else Text("NO", style="bold red"),
            row["what"],
            f"{row['seconds']:.2f}",
        )
        for row in rows
    ]
    columns = [Column("program", wraps=True), Column("held"), Column("what happened", wraps=True)]
    print_table([*columns, Column("seconds", right=True)], cells, title="Six programs in the sandbox")
