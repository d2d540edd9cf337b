"""A command of gametape that stands still once it has written a certain line, so that it can be ended right there, on a
machine of any speed."""

import signal
import subprocess
import sys
from pathlib import Path

from ..patience import wait_until

_PAUSING = """
import json, signal, sys, threading
from gametape.record.append_log import AppendLog

name, text, count, ready = sys.argv[1:5]
append, seen = AppendLog.append, []

def append_and_pause(self, *records):
    append(self, *records)
    if self.path.name == name:
        seen.extend(record for record in records if text in json.dumps(record))
    if len(seen) >= int(count):
        open(ready, "w").close()
        threading.Event().wait()

AppendLog.append = append_and_pause
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started us may ignore it
sys.argv = ["gametape", *sys.argv[5:]]
from gametape.cli.main import main
main()
"""


def start_paused(words: list[str | Path], log: str, text: str, count: int, ready: Path) -> "subprocess.Popen[str]":
    """Run a command until it has appended `count` records that hold `text` to a log of this name."""
    command = [sys.executable, "-c", _PAUSING, log, text, str(count), str(ready), *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: ready.exists() or process.poll() is not None, "the last line")
    assert process.poll() is None, process.communicate()
    return process


def kill(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()
