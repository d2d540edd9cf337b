import ast

import pytest

from gametape.core.verdict import Check
from gametape.record.loaded_task import LoadedTask
from gametape.verify.layers import code_metrics, quality
from gametape.verify.layers.code_metrics import complexity
from gametape.verify.static_analysis.python_source import functions
from gametape.verify.verifier_run import TestOutcome, VerifierRun
from tests.patience import effort
from tests.verify.layers.toy_task import Files, scoring_context, toy_task

START = {"src/m.py": "def f(x):\n    raise NotImplementedError\n"}
SOLVED = "def f(x):\n    return x + 1\n"
TASK = toy_task(
    START, {"src/m.py": SOLVED}, {"tests/test_m.py": "from m import f\n\n\ndef test_a():\n    assert f(1) == 2\n"}
)
PASSED = {test: TestOutcome(test, "passed") for test in TASK.task.tests.every}


def score(written: Files, of: LoadedTask = TASK, runs: tuple[VerifierRun, ...] = ()) -> Check:
    check = quality.score(scoring_context(of, written, runs=runs))
    assert check is not None
    return check


def first(text: str) -> ast.Module:
    return ast.parse(text)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("return 1", 1),
        ("if a: return 1", 2),
        ("if a and b or c: return 1\nelif d: return 2", 5),
        ("for x in y:\n  while z: pass", 3),
        ("return [x for x in y if x]", 2),
        ("try: g()\nexcept A: pass\nexcept B: pass", 3),
        ("match a:\n  case 1: pass\n  case 2: pass", 3),
        ("def g():\n  if a: pass\nreturn g", 1),
    ],
)
def test_complexity_counts_decisions(body: str, value: int) -> None:
    text = "def f():\n" + "\n".join(f"  {line}" for line in body.splitlines())
    assert complexity(dict(functions(ast.parse(text)))["f"]) == value


def test_code_like_the_reference_is_fine() -> None:
    check = score({"src/m.py": SOLVED.replace("x + 1", "1 + x")})
    assert check.score == 1.0
    assert check.detail == "nothing to complain about"


def test_a_tangle_is_named() -> None:
    tangle = (
        "def f(x):\n" + "".join(f"    if x == {n}:\n        return {n} + 1\n" for n in range(40)) + "    return x\n"
    )
    check = score({"src/m.py": tangle})
    assert check.score < 0.85
    assert "src/m.py:1: f has complexity 41" in check.detail


def test_the_level_is_the_references_own() -> None:
    tangle = (
        "def f(x):\n" + "".join(f"    if x == {n}:\n        return {n} + 1\n" for n in range(40)) + "    return x\n"
    )
    assert score({"src/m.py": tangle.replace("== 3:", "== 300:")}, toy_task(START, {"src/m.py": tangle})).score == 1.0


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("def f():\n    return 1\n    x = 2\n", [3]),
        ("def f():\n    while x:\n        break\n        g()\n", [4]),
        ("if False:\n    g()\n", [2]),
        ("if x:\n    raise E\nelse:\n    g()\nh()\n", []),
        ("def f():\n    return\n    yield\n", []),
    ],
)
def test_unreachable_code(text: str, places: list[int]) -> None:
    assert [line for line, _ in code_metrics.unreachable_statements(ast.parse(text))] == places


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("a = 1\nb = 2\nreturn b", ["a"]),
        ("a: int = 1", ["a"]),
        ("a: int", []),
        ("_ = g()", []),
        ("a, b = g()\nreturn a", []),
        ("a = 1\nreturn lambda: a", []),
        ("a = 1\nreturn locals()", []),
        ("global a\na = 1", []),
        ("a = 1\ndef h():\n  nonlocal a\n  a = 2\nreturn h", []),
        ("for a in g(): pass", []),
        ("a = 1\na += 1\nreturn a", []),
    ],
)
def test_unused_variables(body: str, names: list[str]) -> None:
    text = "def f():\n" + "\n".join(f"  {line}" for line in body.splitlines())
    assert [what.split("`")[1] for _, what in code_metrics.unused_variables(ast.parse(text))] == names


def test_unused_functions_are_dead_and_used_ones_are_not() -> None:
    check = score({"src/m.py": SOLVED + "\n\ndef forgotten():\n    return 3\n"})
    assert check.score == pytest.approx(1 - 2 / 7 * 0.5)
    assert "src/m.py:5: `forgotten` is never used" in check.detail
    fine = [
        "\n\ndef helper():\n    return 3\n\n\nTABLE = {'h': helper}\n",
        "\n\n__all__ = ['f', 'helper']\n\n\ndef helper():\n    return 3\n",
        "\n\n@register\ndef helper():\n    return 3\n",
        "\n\nclass A(Visitor):\n    def visit_x(self):\n        return 3\n",
        "\n\nclass A:\n    def __len__(self):\n        return 3\n",
    ]
    for text in fine:
        assert score({"src/m.py": SOLVED + text}).score == 1.0


COPY = """
def {name}(rows, key):
    found = []
    for {row} in rows:
        if {row}.key == key and {row}.value is not None:
            found.append({row}.value)
    total = sum(found)
    mean = total / len(found) if found else 0
    spread = max(found) - min(found)
    return mean, spread
"""


def test_copies_are_seen_under_other_names() -> None:
    twice = COPY.format(name="one", row="row") + COPY.format(name="two", row="line") + "\nUSED = one, two, f\n"
    check = score({"src/m.py": SOLVED + twice})
    assert check.score < 0.9
    assert "repeats src/m.py" in check.detail
    once = COPY.format(name="one", row="row") + "\nUSED = one, f\n"
    assert score({"src/m.py": SOLVED + once}).score == 1.0


def test_copying_from_the_tree_is_seen_too() -> None:
    start = {**START, "src/lib.py": COPY.format(name="one", row="row")}
    task = toy_task(start, {"src/m.py": SOLVED})
    check = score({"src/m.py": SOLVED + COPY.format(name="two", row="r") + "\nUSED = f, two\n"}, task)
    assert check.score < 0.9
    assert "repeats src/lib.py:3" in check.detail


def test_coverage_of_the_written_lines() -> None:
    text = "def f(x):\n    if x:\n        return x + 1\n    return 2\n"
    ran = (VerifierRun(outcomes=PASSED, covered={"src/m.py": frozenset({1, 2, 3})}), VerifierRun(outcomes={}))
    check = score({"src/m.py": text}, runs=ran)
    assert check.score == pytest.approx(0.9)
    assert "src/m.py:4: never ran" in check.detail
    more = (*ran, VerifierRun(outcomes={}, covered={"src/m.py": frozenset({1, 2, 4})}))
    assert score({"src/m.py": text}, runs=more).score == 1.0


def test_coverage_is_left_out_where_a_test_was_not_traced() -> None:
    text = "def f(x):\n    if x:\n        return x + 1\n    return 2\n"
    replayed = VerifierRun(outcomes=PASSED)
    ran = (VerifierRun(outcomes={}, covered={"src/m.py": frozenset({1, 2, 3})}), replayed)
    check = score({"src/m.py": text}, runs=ran)
    assert check.score == 1.0
    assert check.detail == "nothing to complain about"


def test_only_statements_that_leave_a_trace_are_wanted() -> None:
    text = (
        '"""Doc."""\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import x\n\n\n'
        'class A:\n    """Doc."""\n    a: int\n\n'
        '    def f(self):\n        """Doc."""\n        raise NotImplementedError\n'
        "\n    def g(\n        self,\n    ):\n        global z\n        return (\n            1\n        )\n"
    )
    assert sorted(code_metrics.traceable_statements(ast.parse(text))) == [(2, 2), (7, 7), (11, 11), (15, 17), (19, 21)]


@pytest.mark.parametrize(
    "odd", [b"def f(:\n", b"\0", b"# coding: klingon\n\nx = 1\n", b"x = " + b"-" * 100_000 + b"1\n"]
)
def test_code_that_cannot_be_parsed_has_no_quality(odd: bytes) -> None:
    check = score({"src/m.py": odd})
    assert check.score == 0.0
    assert "cannot be parsed: src/m.py" in check.detail


def test_large_files_end_in_time() -> None:
    assert effort(_score_large_files) < 1000


def _score_large_files() -> None:
    score({"src/m.py": SOLVED + "x = [1, 2, f(3), g(4, 5)]\n" * 5_000})
    score({"src/m.py": "def f(x):\n" + "".join(f"    if x == {n}:\n        return {n}\n" for n in range(3_000))})
    score({"src/m.py": "".join(f"def f{n}(x):\n    y = x\n    return {n}\n" for n in range(2_000))})
    score({"src/m.py": "x = f\n" + "".join(" " * n + f"def f{n}(x):\n" for n in range(90)) + " " * 90 + "pass\n"})


def test_other_files_have_no_such_quality() -> None:
    table = toy_task({**START, "src/data.txt": ""}, {"src/data.txt": "a\n"})
    assert quality.score(scoring_context(table, {"src/data.txt": "a\nb\n"})) is None
    assert score({"src/data.txt": "a\nb\n"}).score == 1.0  # an attempt cannot opt out
    assert score({"src/m.py": SOLVED, "src/empty.py": ""}).score == 1.0
