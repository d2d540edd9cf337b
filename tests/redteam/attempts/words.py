"""Attempts on the words that go to the host: numbers, texts and amounts that nobody expects."""

from tests.redteam.attempts.attempt import Attempt
from tests.redteam.attempts.forged_results import limiter

_TELL = "\nif _A:\n    _tell, _out, _ids = _A[_W[12]], _A['out'], sorted(_A[_W[9]][_W[10]])\n    "


def told(body: str):
    return limiter(_TELL + body.replace("\n", "\n    "))


WORDS = [
    Attempt(
        "words.infinite-line",
        "a covered line whose number is infinite",
        "limiter",
        told("_tell({'covered': {'x': [1e999]}})"),
    ),
    Attempt(
        "words.endless-seconds",
        "a test that took 10**400 seconds",
        "limiter",
        told("_tell({'test': _ids[0], 'result': 'passed', 'seconds': 10**400, 'message': ''})"),
    ),
    Attempt(
        "words.nan-seconds",
        "a test that took no number of seconds",
        "limiter",
        told("_tell({'test': _ids[0], 'result': 'passed', 'seconds': float('nan'), 'message': ''})"),
    ),
    Attempt(
        "words.surrogate",
        "a message that is no valid text",
        "limiter",
        limiter("", **{"bucket.py": "raise ValueError('\\ud800 \\udfff')\n"}),
    ),
    Attempt(
        "words.surrogate-event",
        "an event that is no valid text",
        "limiter",
        told("_tell({'event': 'patched', 'detail': '_pytest.x\\ud800', 'file': '/workspace/\\ud801', 'line': 1})"),
    ),
    Attempt(
        "words.blank-lines",
        "millions of empty reports",
        "limiter",
        told("d = b'\\n' * 65536\nfor _ in range(32):\n    os.write(_out, d)"),
    ),
    Attempt(
        "words.nesting",
        "a report nested a hundred thousand times",
        "limiter",
        told("os.write(_out, b'[' * 60000 + b'\\n')"),
    ),
    Attempt(
        "words.results-first",
        "all results at once, before any test, then the end",
        "limiter",
        told(
            "for i in _ids:\n    _tell({'test': i, 'result': 'passed', 'seconds': 0.01, 'message': ''})\n"
            "_tell({'finished': 0})"
        ),
    ),
    Attempt(
        "words.duplicate-keys",
        "a report with two results for one key",
        "limiter",
        told(
            "for i in _ids:\n    os.write(_out, (json.dumps({'test': i, 'result': 'failed', 'message': '', "
            "'seconds': 0})[:-1] + ', \"result\": \"passed\"}\\n').encode())\n_tell({'finished': 0})\nos._exit(1)"
        ),
    ),
    Attempt(
        "words.half-line",
        "half a report, which swallows the runner's own next one",
        "limiter",
        told('os.write(_out, b\'{"event": "x", "detail": "\')'),
    ),
    Attempt(
        "words.long-integer",
        "an integer of more digits than Python reads",
        "limiter",
        told("os.write(_out, b'{\"finished\": ' + b'9' * 20000 + b'}\\n')"),
    ),
    Attempt(
        "words.finish-and-go-on", "says that it is finished, and goes on", "limiter", told("_tell({'finished': 0})")
    ),
]
