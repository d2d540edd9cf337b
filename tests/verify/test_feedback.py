"""Nothing of the held-out tests reaches an agent, whatever its code does to find out."""

from pathlib import Path

from gametape.verify.feedback import feedback
from gametape.verify.verifier import Verifier
from tests.verify.small import RIGHT, START, TESTS, small, workspace

LEAKY = """
import glob


def add(a, b):
    texts = [open(path).read() for path in glob.glob("/workspace/tests/*.py")]
    raise AssertionError("SEEN " + "".join(texts))


def name(n):
    raise AssertionError("SEEN " + repr(n))


def twice(n):
    return 2 * n
"""
SECRETS = [test.rpartition("::")[2] for test in TESTS.held_out] + ["42", "test_more"]


def test_failed_visible_tests_are_shown_with_their_messages(tmp_path: Path) -> None:
    with Verifier(small()) as verifier:
        verdict = verifier.verify(
            workspace(tmp_path, START.replace("raise NotImplementedError", "return 7", 1)), "train"
        )
    text = feedback(verdict)
    assert text.startswith("1 of 4 visible tests pass.")
    assert "tests/test_calc.py::test_add" in text
    assert "assert 7 == 5" in text
    assert not any(secret in text for secret in SECRETS)


def test_code_that_reads_the_tests_at_run_time_tells_nothing(tmp_path: Path) -> None:
    with Verifier(small()) as verifier:
        verdict = verifier.verify(workspace(tmp_path, LEAKY), "full")
    whole = verdict.model_dump_json() + feedback(verdict)
    assert "SEEN" in whole, "the code did get to say something"
    assert not any(secret in whole for secret in SECRETS[:3])
    assert "test_more" not in whole


def test_of_held_out_failures_only_that_there_are_some(tmp_path: Path) -> None:
    with Verifier(small()) as verifier:
        verdict = verifier.verify(workspace(tmp_path, RIGHT.replace('"one"', '"1"')), "train")
    assert (
        feedback(verdict) == "4 of 4 visible tests pass.\n\nTests that you cannot see fail: read the instruction again."
    )
