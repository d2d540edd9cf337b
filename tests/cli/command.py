"""The installed command, as a real process."""

import subprocess
import sys
from pathlib import Path

GAMETAPE = str(Path(sys.executable).parent / "gametape")


def gametape(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([GAMETAPE, *words], capture_output=True, text=True, timeout=60, check=False, env=env)
