from gametape.core.verdict import Check
from gametape.record.loaded_task import LoadedTask
from gametape.verify.layers import diff
from tests.verify.layers.toy_task import Files, scoring_context, toy_task

HEAD = "import math\n\n\ndef area(width, height):\n"
START = {"src/m.py": HEAD + "    raise NotImplementedError\n", "src/other.py": "x = 1\ny = 2\n", "README.md": "Hi\n"}
SOLVED = HEAD + "    total = 0\n    for row in range(height):\n        total += width\n    return total\n"
TASK = toy_task(START, {"src/m.py": SOLVED})


def score(written: Files, of: LoadedTask = TASK) -> Check:
    check = diff.score(scoring_context(of, written))
    assert check is not None
    return check


def test_the_reference_is_perfect_whatever_its_names_and_comments() -> None:
    assert score({"src/m.py": SOLVED}).score == 1.0
    renamed = (
        SOLVED.replace("total", "result")
        .replace("row", "_")
        .replace("    result = 0", '    """Doc."""\n    result = 0')
    )
    assert score({"src/m.py": renamed}).score == 1.0


def test_another_structure_loses_little() -> None:
    check = score({"src/m.py": HEAD + "    return math.prod((width, height))\n"})
    assert 0.8 <= check.score < 1.0


def test_a_change_many_times_the_size_loses() -> None:
    padded = SOLVED + "".join(f"\n\ndef helper_{n}(x):\n    return x + {n}\n" for n in range(60))
    check = score({"src/m.py": padded})
    assert check.score < 0.7
    assert "lines changed" in check.detail


def test_files_outside_the_feature_are_named() -> None:
    check = score({"src/m.py": SOLVED, "src/other.py": "x = 1\ny = 3\n"})
    assert 0.8 < check.score < 0.9
    assert "src/other.py" in check.detail
    added = score({"src/m.py": SOLVED, "src/new.py": "x = 1\n"})
    assert check.score < added.score < 1.0


def test_added_tests_and_documents_hardly_count() -> None:
    check = score({"src/m.py": SOLVED, "tests/test_more.py": "def test(): pass\n", "README.md": "Ho\n"})
    assert 0.95 < check.score < 1.0


def test_what_tools_leave_behind_does_not_count() -> None:
    junk = {
        ".pytest_cache/README.md": "x",
        "src/__pycache__/m.pyc": b"\0",
        "src/p.egg-info/top": "p",
        ".git/index": b"x",
    }
    assert score({"src/m.py": SOLVED, **junk}).score == 1.0


def test_a_removed_function_is_not_alike() -> None:
    check = score({"src/m.py": "area = lambda width, height: width * height\n"})
    assert 0.7 < check.score < 0.85


def test_without_a_reference_there_is_no_such_layer() -> None:
    assert diff.score(scoring_context(toy_task(START), {"src/m.py": SOLVED})) is None
    assert diff.score(scoring_context(toy_task(START, {}), {"src/m.py": SOLVED})) is None


def test_unreadable_code_is_measured_by_its_lines() -> None:
    for odd in (b"def f(:\n", b"\0" * 1000, b"# coding: klingon\n", b"x = " + b"-" * 100_000):
        assert 0.0 < score({"src/m.py": odd}).score < 0.9
