"""An audit hook that reports what the agent's code does to the interpreter.

Hostile code shares this process and can stop the reports; the host judges what it hides that way. Everything that the
hook needs is bound in closures before hostile code runs: the functions of this module build the functions that are
used, and no module-level name refers to those.
"""

import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from . import watched_names as names

Tell = Callable[[str, str, str, int], None]
Text = Callable[[Any], str]
Describe = Callable[..., str | None]
"""From the arguments of an event to the detail that is reported; None if the event is not reported."""
_MOST_OF_A_KIND = 100
_MOST_FRAMES = 40


def compile_patterns() -> None:
    """Compile the hook's patterns, which the interpreter keeps, so that no child has to."""
    text = _make_reader()
    _make_locator([])
    _file_events(text)


def install_audit_hook(tell: Tell, roots: list[str]) -> None:
    """From now on report what lines below `roots` cause. Only what some rule asks for is reported, with a budget for
    each kind of event: so nothing harmless hides what follows."""
    frame_of, locate, text, most = sys._getframe, _make_locator(roots), _make_reader(), _MOST_OF_A_KIND
    describe: dict[str, Describe] = {**_file_events(text), **_process_events(text), **_import_events(text)}
    reported: dict[str, set[tuple[str, str, int]]] = {event: set() for event in describe}

    def hook(event: str, args: tuple[Any, ...]) -> None:
        describe_event = describe.get(event)
        if describe_event is None:
            return
        detail = describe_event(*args)
        if detail is None:
            return
        location = locate(frame_of(1), event == "import")
        if location is None:
            return
        key, known = (detail, *location), reported[event]
        if key not in known and len(known) < most:
            known.add(key)
            tell(event, detail, *location)

    sys.addaudithook(hook)


def _make_locator(roots: list[str]) -> Callable[[FrameType | None, bool], tuple[str, int] | None]:
    directories = tuple(root.rstrip("/") + "/" for root in roots)
    files = frozenset(roots)
    libraries = tuple({sys.base_prefix + "/", sys.prefix + "/", "/usr/lib/python"})
    passive = re.compile(
        r"/(_pytest|pluggy|in_sandbox|unittest)/|/pytest/__init__|/(linecache|traceback|warnings|tokenize)\.py$"
    ).search
    tests = re.compile(r"(^|/)(test_\w+|\w+_test|conftest)\.py$").search
    most = _MOST_FRAMES

    def locate(frame: FrameType | None, importing: bool) -> tuple[str, int] | None:
        """File and line of the nearest frame of the sources, if only library frames lie between it and the event.

        Events of libraries that open files to show source lines in messages are not reported.
        """
        for _ in range(most):
            if frame is None:
                return None
            name = frame.f_code.co_filename
            if name.startswith(directories) or name in files:
                return None if tests(name) else (name, frame.f_lineno)
            if name.startswith("<frozen importlib"):
                if not importing:
                    return None
            elif not name.startswith("<") and (importing or passive(name) or not name.startswith(libraries)):
                return None
            frame = frame.f_back
        return None

    return locate


def _make_reader() -> Text:
    def text(value: Any) -> str:
        kind = type(value)
        if kind is bytes:
            return str(value, "utf-8", "replace")
        return value if kind is str else str(value) if kind is int else ""

    return text


def _make_matcher(*patterns: "re.Pattern[str]") -> Callable[[str], bool]:
    searches = tuple(pattern.search for pattern in patterns)
    return lambda name: any(search(name) for search in searches)


def _file_events(text: Text) -> dict[str, Describe]:
    is_watched = _make_matcher(
        names.GIT_STORE_PATH, names.TOOL_CACHE_PATH, names.PACKAGE_CACHE_PATH, names.PROCESS_SECRET_PATH,
        names.BYTE_CODE_FILE,
    )  # fmt: skip

    def path(*args: Any) -> str | None:
        name = text(args[0])
        return name if name and is_watched(name) else None

    def opened(*args: Any) -> str | None:
        writes = len(args) > 2 and type(args[2]) is int and args[2] & 3
        return None if writes else path(*args)

    return {"open": opened, "os.listdir": path, "os.scandir": path, "sqlite3.connect": path}


def _process_events(text: Text) -> dict[str, Describe]:
    is_watched = _make_matcher(names.GIT_HISTORY_COMMAND)

    def command(*args: Any) -> str | None:
        words = args[1] if len(args) > 1 and type(args[1]) in (list, tuple) else args[:1]
        line = " ".join(text(word) for word in words)
        return line[:300] if is_watched(line) else None

    def forked(*_args: Any) -> str:
        return ""

    return {
        "subprocess.Popen": command, "os.system": command, "os.exec": command, "os.posix_spawn": command,
        "os.spawn": command, "os.fork": forked, "os.forkpty": forked,
    }  # fmt: skip


def _import_events(text: Text) -> dict[str, Describe]:
    def imported(*args: Any) -> str | None:
        name = text(args[0])
        return name if name.startswith(("test_", "tests", "conftest")) else None

    return {"import": imported}
