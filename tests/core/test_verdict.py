import json
from typing import Any

import pytest
from pydantic import ValidationError

from gametape.core.validation import problems_from
from gametape.core.verdict import Verdict

PASSED: dict[str, Any] = {
    "schema_version": "verdict-v1",
    "passed": True,
    "reward": 1.0,
    "checks": [{"name": "tests", "score": 1.0, "detail": "4 of 4"}],
    "integrity": [],
    "signals": [],
    "quarantined": False,
    "stages": [{"name": "one", "passed": True, "tests": {"expected": 4, "passed": 4}}],
    "failures": [],
    "tests": {"expected": 4, "passed": 4, "held_out_expected": 2, "held_out_passed": 2},
    "mode": "split",
    "fresh": {"calls": 32, "agreed": 31},
    "assurance": "high",
    "assurance_detail": "4 tests by replay",
    "seconds": 1.5,
    "cached": False,
    "policy_hash": "abc",
}
PROVEN = {
    "rule": "edited-tests",
    "severity": "proven",
    "file": "tests/test_a.py",
    "line": 3,
    "evidence": "diff",
}
SUSPECT = PROVEN | {"severity": "suspect"}


def problems(**change: Any) -> dict[str, str]:
    document = PASSED | change
    with pytest.raises(ValidationError) as caught:
        Verdict.model_validate(document)
    return dict(problems_from(caught.value, document))


def test_a_verdict_holds_what_the_command_line_promises_and_survives_json() -> None:
    verdict = Verdict.model_validate(PASSED)
    written = verdict.model_dump()
    assert PASSED.keys() == written.keys()
    assert written["tests"].keys() == {
        "expected",
        "passed",
        "failed",
        "missing",
        "skipped",
        "timed_out",
        "held_out_expected",
        "held_out_passed",
    }
    assert Verdict.model_validate(json.loads(json.dumps(written))) == verdict


def test_a_verdict_of_an_earlier_version_still_loads() -> None:
    old = {key: value for key, value in PASSED.items() if key not in ("fresh", "assurance_detail")}
    verdict = Verdict.model_validate(old | {"mode": "shared", "assurance": "medium"})
    assert (verdict.fresh, verdict.assurance, verdict.assurance_detail) == (None, "medium", "")


def test_a_proven_flag_is_worth_exactly_minus_one() -> None:
    Verdict.model_validate(PASSED | {"integrity": [PROVEN], "reward": -1.0, "passed": False})
    assert problems(integrity=[PROVEN], reward=-0.5, passed=False) == {"reward": "exactly -1.0, for a flag is proven"}
    assert problems(integrity=[PROVEN], reward=-1.0) == {"passed": "false, for a flag is proven"}
    Verdict.model_validate(PASSED | {"integrity": [SUSPECT], "reward": 0.5})


def test_a_pass_is_whole_and_agreed() -> None:
    assert "quarantined" in problems(quarantined=True)["passed"]
    assert "every test" in problems(tests={"expected": 4, "passed": 3})["passed"]
    assert "every test" in problems(tests=PASSED["tests"] | {"held_out_passed": 1})["passed"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"reward": 1.01}, "reward"),
        ({"reward": -1.01}, "reward"),
        ({"reward": float("nan")}, "reward"),
        ({"reward": "1"}, "reward"),
        ({"checks": [{"name": "t", "score": 1.1, "detail": ""}]}, "checks[0].score"),
        ({"checks": [{"name": "t", "score": -0.1, "detail": ""}]}, "checks[0].score"),
        ({"integrity": [PROVEN | {"severity": "maybe"}]}, "integrity[0].severity"),
        ({"tests": {"expected": 1, "passed": 2}}, "tests.passed"),
        ({"tests": {"expected": 1, "passed": 1, "held_out_passed": 1}}, "tests.held_out_passed"),
        ({"fresh": {"calls": 3, "agreed": 4}}, "fresh.agreed"),
        ({"mode": "apart"}, "mode"),
        ({"passed": 1}, "passed"),
        ({"schema_version": "verdict-v2"}, "schema_version"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_what_is_out_of_range_is_refused(change: dict[str, Any], path: str) -> None:
    assert path in problems(**change)
