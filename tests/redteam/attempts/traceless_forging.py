"""Attempts on shared mode that forge the visible tests only, so that no twin contradicts them.

They ask whether a way of forging is seen. What told a visible run from a hidden one is gone since, so they do nothing.
"""

from tests.redteam.attempts.attempt import Attempt
from tests.redteam.attempts.shared_limiter import limiter, trace

ENCODER = """
_real = json._default_encoder.encode


def _encode(document):
    if "test" in document:
        document = {**document, "result": _W["passed"], "message": ""}
    return _real(document)


if SEEN:
    json._default_encoder.encode = _encode
"""

CELL = """
def _write(real):
    def write(out, line):
        real(out, line.replace(b'"failed"', b'"passed"'))
        return len(line)

    return write


if SEEN:
    for _cell in getattr(getattr(_REPORTER, _W["tell"]), _W["cells"]):
        if getattr(_cell, _W["content"]) is os.write:
            setattr(_cell, _W["content"], _write(os.write))
"""

MUTE = """
if SEEN:
    for _cell in getattr(getattr(_REPORTER, _W["correct"]), _W["cells"]):
        if getattr(getattr(_cell, _W["content"]), "__name__", "") == "report_patches":
            setattr(_cell, _W["content"], lambda _: None)
    _kind = getattr(sys.modules[_W["runner"]], _W["report"])
    _real = getattr(_kind, _W["make"]).__func__


    def _make(cls, item, call):
        call.excinfo = None
        return _real(cls, item, call)


    setattr(_kind, _W["make"], classmethod(_make))
"""

RESTORED = """
def act(*_):
    if not SEEN:
        return
    kind = getattr(sys.modules[_W["runner"]], _W["report"])
    first = vars(kind)[_W["make"]]
    if first.__func__.__module__ == __name__:
        return

    def make(cls, item, call):
        if call.when == "call":
            setattr(kind, _W["make"], first)
            call.excinfo = None
        return first.__func__(cls, item, call)

    setattr(kind, _W["make"], classmethod(make))
"""

IMPORTED = """
if SEEN:
    _module = sys.modules[_W["runner"]]
    _kind = getattr(_module, _W["report"])


    class _Report(_kind):
        @classmethod
        def from_item_and_call(cls, item, call):
            call.excinfo = None
            return _kind.from_item_and_call(item, call)


    setattr(_module, _W["report"], _Report)
"""

RESULTS = """
def _clear():
    results = vars(_REPORTER)[_W["results"]]
    for test in results:
        results[test] = _W["passed"]


def act(*_):
    item = around(_W["item"])
    if SEEN and item is not None:
        getattr(item.session, _W["setup"]).addfinalizer(_clear, item)
"""

THREAD = """
import threading
import time


def _clear():
    while True:
        results = vars(_REPORTER)[_W["results"]]
        for test in list(results):
            results[test] = _W["passed"]
        time.sleep(0)


if SEEN:
    sys.setswitchinterval(1e-6)
    threading.Thread(target=_clear, daemon=True).start()
"""

TIMER = """
import signal


def _clear(*_):
    results = vars(_REPORTER)[_W["results"]]
    for test in list(results):
        results[test] = _W["passed"]


if SEEN:
    signal.signal(signal.SIGALRM, _clear)
    signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
"""

JUMP = """
def _over(frame, event, _):
    if event == "line":
        lines = sorted({line for _, _, line in getattr(frame, _W["code"]).co_lines() if line})
        if getattr(frame, _W["jump"]) != lines[-1]:
            return _over
    return _over


def _skip(frame, event, argument):
    code = getattr(frame, _W["code"])
    if getattr(code, _W["name"]).startswith(_W["test"]) and "/tests/" in getattr(code, _W["file"]):
        return _leave
    return None


def _leave(frame, event, argument):
    if event == "line":
        setattr(frame, _W["jump"], max(line for _, _, line in getattr(frame, _W["code"]).co_lines() if line))
    return _leave


def _quiet(*_):
    raise SystemError


if SEEN:
    _real = None
    getattr(sys, _W["settrace"])(_skip)
"""


TRACELESS = [
    trace("encoder", "the JSON encoder that reports are written with says passed", ENCODER),
    trace("cell", "the cell of the reporter's writer holds another function", CELL),
    trace("mute", "the cell that reports patches is emptied, then the runner is patched", MUTE),
    trace("restored", "a patch of the runner that takes itself back before anybody looks", RESTORED),
    trace("imported", "a class that a module of the runner imported is replaced there", IMPORTED),
    trace("results", "a finaliser of the item writes the reporter's results before they are told", RESULTS),
    trace("thread", "a thread writes the reporter's results over and over", THREAD),
    trace("timer", "a timer's signal handler writes the reporter's results", TIMER),
    trace("jump", "a trace function jumps to the last line of each test", JUMP),
    Attempt("trace.encoder-full", "the encoder, in a full verdict", "limiter", limiter(ENCODER), "full"),
    Attempt(
        "trace.entry-points",
        "a plugin through the metadata of a package beside the sources",
        "limiter",
        limiter(
            "",
            limiter__entry_points_dot_txt="[pytest11]\nunits = limiter.bucket\n",
        ),
    ),
]
