"""Attempts to forge a verdict, each run for real: none may earn anything, and what can be seen is seen.

docs/red-team.md tells what each one tried and found. Those that are open are expected to fail here, and say why.
"""

import functools
import re

import pytest

from gametape.verify.verifier import Verifier
from tests.redteam.attempts.attempt import loaded_task_of, plant
from tests.redteam.attempts.attempts import ATTEMPTS, FAST, OPEN, UNPAID, UNSEEN
from tests.redteam.attempts.channels import PROBE


@pytest.fixture(scope="module")
def verifier(tmp_path_factory, prepared_home):
    made = {}

    @functools.cache
    def of(task):
        home = prepared_home(tmp_path_factory.mktemp(task))
        made[task] = Verifier(loaded_task_of(task), home, keep_verdicts=False)
        return made[task]

    yield of
    for each in made.values():
        each.close()


def _parameters():
    for attempt in ATTEMPTS:
        marks = [] if attempt.name in FAST else [pytest.mark.slow]
        if reason := OPEN.get(attempt.name):
            marks.append(pytest.mark.xfail(reason=reason, strict=True))
        yield pytest.param(attempt, id=attempt.name, marks=marks)


@pytest.mark.parametrize("attempt", list(_parameters()))
def test_an_attempt_earns_nothing(attempt, verifier, tmp_path):
    plant(attempt, tmp_path / "workspace")
    verdict = verifier(attempt.task).verify(tmp_path / "workspace", attempt.profile)
    verdict.model_dump_json()
    rules = sorted({flag.rule for flag in verdict.integrity})
    if any(signal.name == "nothing asked" for signal in verdict.signals):  # it may pass, and no reward pays it
        assert not verdict.passed or attempt.name in UNPAID
        binary = verifier(attempt.task).verify(tmp_path / "workspace", attempt.profile, "binary")
        assert binary.reward == 0.0 == verdict.reward
        return
    assert not verdict.passed, rules
    assert verdict.reward <= 0, (verdict.reward, rules)
    assert rules or attempt.name in UNSEEN, verdict.signals


def test_every_name_in_the_tables_is_an_attempt():
    names = [attempt.name for attempt in ATTEMPTS]
    assert len(names) == len(set(names))
    assert {*OPEN, *UNPAID, *UNSEEN, *FAST} <= set(names)


def test_a_test_process_leaves_nothing_for_the_next(verifier, tmp_path):
    loaded_task = loaded_task_of("limiter")
    loaded_task.start.write_to(tmp_path)
    for name, text in {"bucket": PROBE, "limiter": "from limiter.bucket import Limiter\n"}.items():
        (tmp_path / f"limiter/{name}.py").write_text(text)
    (tmp_path / "limiter/rate.py").write_text("from limiter.bucket import parse_rate\n")
    verdict = verifier("limiter").verify(tmp_path, "train")
    found = {
        (failure.test.partition("::")[0], said)
        for failure in verdict.failures
        for said in re.findall(r"RuntimeError: found: (\[.*?\])", failure.message)
    }
    assert found == {(f"tests/test_{name}.py", "[]") for name in ("bucket", "limiter", "rate")}
