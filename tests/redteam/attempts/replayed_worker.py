"""Attempts by replay on the worker and the sandbox: leaving, reading ahead, answers that are odd, slow or large."""

from tests.redteam.attempts.slugs_module import on_slugs, slugs

# Slow and large.
_SLOW = slugs(
    "import random\nreturn str(random.random())", "import time\n\ntime.sleep(3.3)\n\n\n"
)  # every process sleeps for less than a transcript may take, and no answer is the same twice
_LARGE = slugs("return [set() for _ in range(100_000)]")
_PEEK = slugs(
    """import os, re, socket, stat
for name in os.listdir("/proc/self/fd"):
    try:
        if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
            ahead = socket.socket(fileno=os.dup(int(name))).recv(1 << 16, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            for text in re.findall(rb"[a-z0-9]+(?:-[a-z0-9]+)+", ahead):
                return text.decode()
    except OSError:
        pass
raise ValueError(title)"""
)
_FILES = slugs(
    """import pathlib
for name in ("conftest.py", "tests/conftest.py", "pytest.ini", "/tmp/conftest.py", "sitecustomize.py"):
    try:
        pathlib.Path(name).write_text("def pytest_runtest_call(item): pass\\n")
    except OSError:
        pass
return "x" """
)

WORKER = [
    on_slugs("echo", "the title comes back", slugs("return title")),
    on_slugs("peek", "what waits in the socket is read ahead", _PEEK),
    on_slugs("files", "files that pytest would read", _FILES),
    on_slugs("exit", "the process leaves with success", slugs("import os\nos._exit(0)")),
    on_slugs("system-exit", "SystemExit(0) out of every call", slugs("raise SystemExit(0)")),
    on_slugs("interrupt", "KeyboardInterrupt out of every call", slugs("raise KeyboardInterrupt")),
    on_slugs("skip", "unittest's SkipTest out of every call", slugs("import unittest\nraise unittest.SkipTest('no')")),
    on_slugs("surrogate", "a lone surrogate in an error", slugs("raise RuntimeError('\\ud800')")),
    on_slugs("endless", "an iterator in place of a text", slugs("return iter(int, 1)")),
    on_slugs("huge-int", "an int with more digits than Python prints", slugs("return 10**5000")),
    on_slugs(
        "nested",
        "a list within lists, within the wire's depth",
        slugs("r = []\nfor _ in range(1500):\n    r = [r]\nreturn r"),
    ),
    on_slugs("slow", "every process sleeps a while, and answers at random", _SLOW),
    on_slugs("large", "a large answer to each test, which the host keeps", _LARGE),
]
