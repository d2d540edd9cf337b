"""Candidates from tracebacks, type errors and lint findings in tool output, about code that the agent itself wrote."""

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
"""None of these backtracks over a text: they read whatever a policy printed."""
_OF_A_COMMAND = ("<string>", "<stdin>")
_MOST = 8
"""Candidates of one turn that are used: a broken module gives hundreds."""


def candidates_from_error_output(evidence: EpisodeEvidence) -> Iterator[HintCandidate]:
    for turn in evidence.turns:
        candidates = [*_tracebacks(evidence, turn), *_findings(evidence, turn)]
        yield from candidates[:_MOST]


def _tracebacks(evidence: EpisodeEvidence, turn: RecordedTurn) -> Iterator[HintCandidate]:
    """For each traceback, the writer of the last frame in a file that the agent wrote; a command's own code belongs to
    this turn. Errors in files that the agent never touched are the task itself."""
    for text in _TRACEBACK.split(turn.observed_text)[1:]:
        raised = _RAISED.search(text)
        if raised is None:
            continue
        frames = _FRAME.findall(text[: raised.start()])
        own = turn if frames and frames[-1] in _OF_A_COMMAND else None
        blamed = next(
            (writer for frame in reversed(frames) if (writer := last_writer(evidence.turns, frame, turn))), own
        )
        if blamed is not None:
            yield traceback_candidate(evidence, blamed, turn, raised[1], raised[2])


def _findings(evidence: EpisodeEvidence, turn: RecordedTurn) -> Iterator[HintCandidate]:
    for path, line in _TYPED.findall(turn.observed_text):
        if blamed := last_writer(evidence.turns, path, turn):
            message, _, suffix = line.rstrip().rpartition(" ")
            code = _CODE.fullmatch(suffix)
            yield finding_candidate(
                evidence, blamed, turn, "types", code[1] if code else "", message.rstrip() if code else line
            )
    for path, code, message in _LINTED.findall(turn.observed_text):
        if blamed := last_writer(evidence.turns, path, turn):
            yield finding_candidate(evidence, blamed, turn, "lint", code, message)


def traceback_candidate(
    evidence: EpisodeEvidence, blamed: RecordedTurn, noticed: RecordedTurn, kind: str, message: str
) -> HintCandidate:
    kind = kind.rpartition(".")[2]
    words = generalise(message, argument_names(blamed.calls), evidence.tool_words)
    hint = f"avoid : {kind} : {words}" if words else f"avoid : {kind} in what you write"
    return make_candidate(blamed, noticed, "traceback", kind, hint, f"{kind}: {message}")


def finding_candidate(
    evidence: EpisodeEvidence, blamed: RecordedTurn, noticed: RecordedTurn, source: HintSource, code: str, message: str
) -> HintCandidate:
    words = generalise(message, argument_names(blamed.calls), evidence.tool_words) or code
    return make_candidate(
        blamed, noticed, source, f"{source} {code}".strip(), f"avoid : {words}", f"{code} {message}".strip()
    )
