"""The installed command, as a real process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

GAMETAPE = str(Path(sys.executable).parent / "gametape")


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
    command = [sys.executable, GAMETAPE, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=env, cwd=cwd)


def run(*words: str | Path, cwd: Path | None = None) -> Ran:
    done = gametape(*words, cwd=cwd)
    assert "Traceback" not in done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)
