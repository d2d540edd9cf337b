"""Runs *inside* the sandbox, as `sitecustomize`: writes the interpreter's audit events to the audit pipe.

Hostile code can silence it; it is for reporting. It imports nothing of the package, and leaves nothing in the
program's namespace.
"""

import json
import os
import sys
from typing import Any

AUDIT_FD = 3
_MOST = 500
_SPAWNING = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def install(rules: dict[str, list[str]]) -> None:
    """Listen from now on. Everything the hook needs is bound here, out of reach of later patches."""
    write, dumps, pid, absolute, frame_of = os.write, json.dumps, os.getpid, os.path.abspath, sys._getframe
    allowed = (*(f"{directory}/" for directory in rules["writable_directories"]), "/dev/")
    libraries = (sys.base_prefix, sys.prefix)
    noted: set[tuple[str, str]] = set()

    def note(rule: str, name: str) -> None:
        if len(noted) < _MOST and (rule, name) not in noted:
            noted.add((rule, name))
            try:
                write(AUDIT_FD, dumps([rule, pid(), name[:500]]).encode() + b"\n")
            except OSError:
                return  # the program closed the pipe

    def by_the_program() -> bool:
        """Whether the nearest frame with a file is the program's and not the standard library's."""
        frame = frame_of(1).f_back  # none when the interpreter itself starts the program
        while frame is not None and frame.f_code.co_filename.startswith("<frozen"):
            frame = frame.f_back
        return frame is not None and not frame.f_code.co_filename.startswith(libraries)

    def importing() -> bool:
        """The import system executes modules, which is not what a rule against `exec` means."""
        caller = frame_of(1).f_back
        return caller is not None and caller.f_code.co_filename.startswith("<frozen")

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "import":
            if args[0].partition(".")[0] in rules["forbidden_modules"] and by_the_program():
                note("import", args[0])
        elif event in ("exec", "compile"):
            if event in rules["forbidden_calls"] and not importing() and by_the_program():
                note("call", event)
        elif event == "open":
            path, flags = args[0], args[2]
            if isinstance(path, str) and flags & _WRITING and not absolute(path).startswith(allowed):
                note("write", absolute(path))
        elif event in _SPAWNING and "subprocess" in rules["forbidden_modules"] and by_the_program():
            note("spawn", event)

    sys.addaudithook(hook)


if __name__ == "sitecustomize":
    with open(os.path.join(os.path.dirname(__file__), "rules.json"), encoding="utf-8") as _file:
        install(json.load(_file))
