"""Tracebacks, type errors and lint findings in what came back, about code that the agent itself wrote."""

import re
from collections.abc import Iterator

from gametape.coach.complaints import argument_names, generalise
from gametape.coach.evidence import EpisodeEvidence, HintCandidate, RecordedTurn
from gametape.coach.sources.attribution import last_writer, make_candidate
from gametape.core.hint import HintSource

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


def candidates_from_error_output(case: EpisodeEvidence) -> Iterator[HintCandidate]:
    for turn in case.turns:
        found = [*_tracebacks(case, turn), *_findings(case, turn)]
        yield from found[:_MOST]


def _tracebacks(case: EpisodeEvidence, turn: RecordedTurn) -> Iterator[HintCandidate]:
    """Of each the last frame in a file that the agent wrote; a command's own code is this turn's. What fails in files
    that it never touched is what it was sent to look for."""
    for text in _TRACEBACK.split(turn.observed_text)[1:]:
        raised = _RAISED.search(text)
        if raised is None:
            continue
        frames = _FRAME.findall(text[: raised.start()])
        own = turn if frames and frames[-1] in _OF_A_COMMAND else None
        at = next((by for frame in reversed(frames) if (by := last_writer(case.turns, frame, turn))), own)
        if at is not None:
            yield traceback_candidate(case, at, turn, raised[1], raised[2])


def _findings(case: EpisodeEvidence, turn: RecordedTurn) -> Iterator[HintCandidate]:
    for path, line in _TYPED.findall(turn.observed_text):
        if at := last_writer(case.turns, path, turn):
            told, _, last = line.rstrip().rpartition(" ")
            code = _CODE.fullmatch(last)
            yield finding_candidate(case, at, turn, "types", code[1] if code else "", told.rstrip() if code else line)
    for path, code, told in _LINTED.findall(turn.observed_text):
        if at := last_writer(case.turns, path, turn):
            yield finding_candidate(case, at, turn, "lint", code, told)


def traceback_candidate(
    case: EpisodeEvidence, at: RecordedTurn, noticed: RecordedTurn, kind: str, message: str
) -> HintCandidate:
    kind = kind.rpartition(".")[2]
    words = generalise(message, argument_names(at.calls), case.tool_words)
    hint = f"avoid : {kind} : {words}" if words else f"avoid : {kind} in what you write"
    return make_candidate(at, noticed, "traceback", kind, hint, f"{kind}: {message}")


def finding_candidate(
    case: EpisodeEvidence, at: RecordedTurn, noticed: RecordedTurn, source: HintSource, code: str, message: str
) -> HintCandidate:
    words = generalise(message, argument_names(at.calls), case.tool_words) or code
    return make_candidate(
        at, noticed, source, f"{source} {code}".strip(), f"avoid : {words}", f"{code} {message}".strip()
    )
