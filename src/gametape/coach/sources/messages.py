"""Tracebacks, type errors and lint findings in what came back, about code that the agent itself wrote."""

import re
from collections.abc import Iterator

from gametape.coach.sources.writing import named, writer
from gametape.coach.target import Target
from gametape.coach.turns import Case, Turn
from gametape.coach.wording import general, names_in
from gametape.core.hint import Source

_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):$", re.MULTILINE)
_FRAME = re.compile(r"^[ \t]+File \"([^\"\n]+)\", line \d+", re.MULTILINE)
_RAISED = re.compile(
    r"^([A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit|Iteration))\b:?[ \t]*(.*)$", re.MULTILINE
)
_TYPED = re.compile(r"^(\S+\.pyi?):\d+(?::\d+)?: error: (.+)$", re.MULTILINE)
_CODE = re.compile(r"\[([\w-]+)\]")
_LINTED = re.compile(r"^(\S+\.pyi?):\d+:\d+: ([A-Z]{1,4}\d{2,4})\b(?: \[\*\])? (.+)$", re.MULTILINE)
"""None of these goes over a text twice: what they read is whatever a policy printed."""
_OF_A_COMMAND = ("<string>", "<stdin>")
_MOST = 8
"""Of one turn: a broken module gives hundreds."""


def messages(case: Case) -> Iterator[Target]:
    for turn in case.turns:
        found = [*_tracebacks(case, turn), *_findings(case, turn)]
        yield from found[:_MOST]


def _tracebacks(case: Case, turn: Turn) -> Iterator[Target]:
    """Of each the last frame in a file that the agent wrote; a command's own code is this turn's. What fails in files
    that it never touched is what it was sent to look for."""
    for text in _TRACEBACK.split(turn.seen)[1:]:
        raised = _RAISED.search(text)
        if raised is None:
            continue
        frames = _FRAME.findall(text[: raised.start()])
        own = turn if frames and frames[-1] in _OF_A_COMMAND else None
        at = next((by for frame in reversed(frames) if (by := writer(case.turns, frame, turn))), own)
        if at is not None:
            yield traceback_target(case, at, turn, raised[1], raised[2])


def _findings(case: Case, turn: Turn) -> Iterator[Target]:
    for path, line in _TYPED.findall(turn.seen):
        if at := writer(case.turns, path, turn):
            told, _, last = line.rstrip().rpartition(" ")
            code = _CODE.fullmatch(last)
            yield finding_target(case, at, turn, "types", code[1] if code else "", told.rstrip() if code else line)
    for path, code, told in _LINTED.findall(turn.seen):
        if at := writer(case.turns, path, turn):
            yield finding_target(case, at, turn, "lint", code, told)


def traceback_target(case: Case, at: Turn, noticed: Turn, kind: str, told: str) -> Target:
    kind = kind.rpartition(".")[2]
    words = general(told, names_in(at.calls), case.known)
    hint = f"avoid : {kind} : {words}" if words else f"avoid : {kind} in what you write"
    return named(at, noticed, "traceback", kind, hint, f"{kind}: {told}")


def finding_target(case: Case, at: Turn, noticed: Turn, source: Source, code: str, told: str) -> Target:
    words = general(told, names_in(at.calls), case.known) or code
    return named(at, noticed, source, f"{source} {code}".strip(), f"avoid : {words}", f"{code} {told}".strip())
