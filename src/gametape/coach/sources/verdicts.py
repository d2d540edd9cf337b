"""Candidates from the verdict: failing tests, layers below full score, and integrity flags."""

import re
from collections.abc import Iterator

from gametape.coach.evidence import EpisodeEvidence, HintCandidate, RecordedTurn
from gametape.coach.hints import OWN_WORK, RUN_TESTS
from gametape.coach.sources.attribution import last_writer, make_candidate
from gametape.coach.sources.error_messages import finding_candidate, traceback_candidate
from gametape.core.hint import HintSource
from gametape.core.verdict import Verdict

_FILE = re.compile(r"[\w./-]+\.py\b")
_RAISED = re.compile(r"\b([A-Z]\w*(?:Error|Exception|Exit|Iteration))\b:?[ \t]*([^\n]*)")
_TESTS = re.compile(r"\b(?:pytest|unittest|tox|nox|make (?:test|check))\b")
_LONGEST = 2000


def candidates_from_verdict(evidence: EpisodeEvidence) -> Iterator[HintCandidate]:
    verdict = evidence.score.verdict if evidence.score else None
    if verdict is None or not evidence.turns:
        return
    last = evidence.turns[-1]
    yield from _failures(evidence, verdict, last)
    yield from _layers(evidence, verdict, last)
    if verdict.failures and not _tested(evidence) and any(call.name == "finish" for call in last.calls):
        failing = verdict.failures[0].test
        yield make_candidate(last, last, "verifier", "finished untested", RUN_TESTS, f"{failing} fails and was not run")


def _failures(evidence: EpisodeEvidence, verdict: Verdict, last: RecordedTurn) -> Iterator[HintCandidate]:
    """Visible tests that fail in files that a turn wrote: the file that a message names last counts."""
    for failure in verdict.failures:
        message = failure.message[-_LONGEST:]
        writers = (last_writer(evidence.turns, path) for path in reversed(_FILE.findall(message)))
        blamed = next((turn for turn in writers if turn), None)
        if blamed is not None and (raised := _RAISED.findall(message)):
            candidate = traceback_candidate(evidence, blamed, last, *raised[-1])
            yield make_candidate(
                blamed, last, "verifier", candidate.type, candidate.text, f"{failure.test}: {message[-200:]}"
            )


def _layers(evidence: EpisodeEvidence, verdict: Verdict, last: RecordedTurn) -> Iterator[HintCandidate]:
    for check in verdict.checks:
        if check.name in ("types", "lint") and check.score < 1:
            blamed = next(
                (
                    turn
                    for path in _FILE.findall(check.detail[:_LONGEST])
                    if (turn := last_writer(evidence.turns, path))
                ),
                None,
            )
            if blamed is not None:
                source: HintSource = "types" if check.name == "types" else "lint"
                yield finding_candidate(evidence, blamed, last, source, "", check.detail)


def _tested(evidence: EpisodeEvidence) -> bool:
    """Whether tests were run after the last change."""
    for turn in reversed(evidence.turns):
        for call in turn.calls:
            if call.name == "shell" and _TESTS.search(str(call.arguments.get("command", ""))):
                return True
            if call.name in ("write", "edit"):
                return False
    return False


def candidates_from_flags(evidence: EpisodeEvidence) -> Iterator[HintCandidate]:
    """The hint does not name the rule: a policy that knows the rule learns to evade it."""
    for flag in evidence.flags:
        blamed = (
            evidence.turn_at_step(flag.step)
            if flag.step
            else last_writer(evidence.turns, flag.file)
            if flag.file
            else None
        )
        if blamed is not None:
            yield make_candidate(
                blamed, blamed, "integrity", flag.rule.partition(".")[0], OWN_WORK, f"{flag.rule}: {flag.evidence}"
            )
