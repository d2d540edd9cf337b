"""The installed command, as a real process: one that begins with its imports done (`tests/forked.py`)."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from ..forked import fork_server

GAMETAPE = str(Path(sys.executable).parent / "gametape")
_IMPORTED = (
    "gametape.agent.solve",
    "gametape.cli.coach",
    "gametape.cli.eval",
    "gametape.cli.goal",
    "gametape.cli.heartbeat",
    "gametape.cli.mine",
    "gametape.cli.task",
    "gametape.cli.thread",
    "gametape.cli.trajectory",
    "gametape.coach.coach",
    "gametape.desk.runner",
    "gametape.desk.threads.overview",
    "gametape.evals.runner",
    "gametape.redteam.admission",
    "gametape.tasks.checkout",
    "gametape.tasks.export",
    "gametape.tasks.mining.miner",
    "gametape.verify.verifier",
    "rich.markdown",
    "rich.progress",
)
"""What the verbs import when they are called; nothing of it starts a thread."""
_IMPORTED_TO_TRAIN = ("gametape.terminal.training_view", "gametape.train.training")
"""These bring torch, so they have a server of their own."""


class Ran(NamedTuple):
    """What a program that never shows a traceback said."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return answer


def gametape(
    *words: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return fork_server("gametape.cli.main:main", *_IMPORTED).run([GAMETAPE, *map(str, words)], cwd, env)


def run(*words: str | Path, cwd: Path | None = None) -> Ran:
    return _told(gametape(*words, cwd=cwd))


def run_with_torch(*words: str | Path, cwd: Path | None = None) -> Ran:
    server = fork_server("gametape.cli.main:main", *_IMPORTED_TO_TRAIN)
    return _told(server.run([GAMETAPE, *map(str, words)], cwd))


def _told(done: subprocess.CompletedProcess[str]) -> Ran:
    assert "Traceback" not in done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)
