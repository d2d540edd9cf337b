"""Why a test does not pass with the code in another sandbox, in a word that can be counted."""

import re

from gametape.verify.replay.store import NotReplayable
from gametape.verify.verifier_run import TestOutcome

_LONGEST = 300
_WORDS = (
    ("argument", r"cannot be passed to the code under test"),
    ("answer", r"is not plain data|not plain data:"),
    ("subclass", r"cannot derive from"),
    ("callback", r"cannot be called back|can only be called during a call|an argument of a callback"),
    ("pickle", r"cannot be pickled"),
    ("equality", r"claims to equal"),
    ("attribute", r"that split mode could show|split mode: __"),
    ("module", r"the test process needs a module of this name"),
    ("size", r"too large to send|larger than \d+ bytes|nested deeper than"),
    ("worker", r"no answer any more|the other side is gone|WireError"),
    ("assertion", r"AssertionError|^E\s+assert |DID NOT RAISE"),
)
_ERROR_LINE = re.compile(r"^E\s+(.*)", re.MULTILINE)
_FAILED_LINE = re.compile(r"^>\s+(.*)", re.MULTILINE)


def why_not(outcome: TestOutcome) -> NotReplayable:
    """The reason for a test that did not pass."""
    lines = _ERROR_LINE.findall(outcome.message) or outcome.message.strip().splitlines()[-1:]
    if lines == ["AssertionError"]:  # a recorded test says no more, since its assertions are not rewritten
        lines = [*_FAILED_LINE.findall(outcome.message)[-1:], *lines]
    detail = " ".join(lines)[:_LONGEST]
    if outcome.result == "failed":
        word = next((word for word, pattern in _WORDS if re.search(pattern, outcome.message, re.MULTILINE)), "error")
        return NotReplayable(word, detail)
    return NotReplayable("time" if outcome.result == "timed_out" else outcome.result, detail)
