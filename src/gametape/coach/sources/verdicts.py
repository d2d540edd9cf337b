"""What the verifier found wrong in the end."""

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


def candidates_from_verdict(case: EpisodeEvidence) -> Iterator[HintCandidate]:
    verdict = case.score.verdict if case.score else None
    if verdict is None or not case.turns:
        return
    last = case.turns[-1]
    yield from _failures(case, verdict, last)
    yield from _layers(case, verdict, last)
    if verdict.failures and not _tested(case) and any(call.name == "finish" for call in last.calls):
        failing = verdict.failures[0].test
        yield make_candidate(last, last, "verifier", "finished untested", RUN_TESTS, f"{failing} fails and was not run")


def _failures(case: EpisodeEvidence, verdict: Verdict, last: RecordedTurn) -> Iterator[HintCandidate]:
    """Visible tests that fail in files that a turn wrote: the file named last is where it broke."""
    for failure in verdict.failures:
        message = failure.message[-_LONGEST:]
        found = (last_writer(case.turns, path) for path in reversed(_FILE.findall(message)))
        at = next((turn for turn in found if turn), None)
        if at is not None and (raised := _RAISED.findall(message)):
            target = traceback_candidate(case, at, last, *raised[-1])
            yield make_candidate(at, last, "verifier", target.type, target.text, f"{failure.test}: {message[-200:]}")


def _layers(case: EpisodeEvidence, verdict: Verdict, last: RecordedTurn) -> Iterator[HintCandidate]:
    for check in verdict.checks:
        if check.name in ("types", "lint") and check.score < 1:
            at = next(
                (turn for path in _FILE.findall(check.detail[:_LONGEST]) if (turn := last_writer(case.turns, path))),
                None,
            )
            if at is not None:
                source: HintSource = "types" if check.name == "types" else "lint"
                yield finding_candidate(case, at, last, source, "", check.detail)


def _tested(case: EpisodeEvidence) -> bool:
    """Whether tests were run after the last change."""
    for turn in reversed(case.turns):
        for call in turn.calls:
            if call.name == "shell" and _TESTS.search(str(call.arguments.get("command", ""))):
                return True
            if call.name in ("write", "edit"):
                return False
    return False


def candidates_from_flags(case: EpisodeEvidence) -> Iterator[HintCandidate]:
    """The hint does not say which rule caught it: whoever is told learns to go round it."""
    for flag in case.flags:
        at = case.turn_at_step(flag.step) if flag.step else last_writer(case.turns, flag.file) if flag.file else None
        if at is not None:
            yield make_candidate(
                at, at, "integrity", flag.rule.partition(".")[0], OWN_WORK, f"{flag.rule}: {flag.evidence}"
            )
