"""Every twin of many small tests fails where the test passes, under pytest."""

import ast
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from gametape.syntax.source_text import SourceEdit
from gametape.verify.twins.candidates import candidate_twins
from gametape.verify.twins.twin import Twin, apply_twins
from tests.patience import HANG

from .snippets import SILENT, SNIPPETS

_REPORTER = """
import json, os
results = {}
def pytest_runtest_logreport(report):
    if report.failed or results.get(report.nodeid) == "failed":
        results[report.nodeid] = "failed"
    elif report.when == "call":
        results[report.nodeid] = report.outcome
def pytest_sessionfinish():
    with open("results.json", "w") as file:
        json.dump(results, file)
"""


def outcomes(directory: Path, sources: dict[str, str]) -> dict[str, str]:
    """Run test files in one process of pytest: the result of each test id."""
    (directory / "conftest.py").write_text(_REPORTER)
    for name, source in sources.items():
        (directory / name).write_bytes(source.encode())
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", ".", "-p", "no:cacheprovider", "."]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run(command, cwd=directory, env=environment, capture_output=True, timeout=HANG, check=False)
    found: dict[str, str] = json.loads((directory / "results.json").read_text())
    return found


def test_tests_pass_and_every_twin_fails(tmp_path: Path) -> None:
    sources, twins = {}, {}
    for number, source in enumerate(SNIPPETS.values()):
        sources[f"test_s{number}_real.py"] = source
        for index, twin in enumerate(candidate_twins(source)):
            name = f"test_s{number}_t{index}.py"
            sources[name] = apply_twins(source, [twin])
            twins[name] = twin
    results = outcomes(tmp_path, sources)
    real = {test: result for test, result in results.items() if "_real.py" in test}
    assert set(real.values()) == {"passed"}
    assert len(twins) > 150
    for name, twin in twins.items():
        ids = [test for test in real if test.startswith(name.rpartition("_t")[0] + "_real.py::")]
        own = [test.replace(test.partition("::")[0], name) for test in ids]
        turned = [t for t in own if t.partition("::")[2].partition("[")[0] == twin.function]
        claims = (
            [t for t in turned if any(t.endswith(f"[{changed.case}]") for changed in twin.cases)]
            if twin.cases
            else turned
        )
        assert claims, (twin, own)
        for test in own:
            wanted = "failed" if test in claims else "passed"
            assert results.get(twin.id_of(test)) == wanted, (test, twin, sources[name])


@pytest.mark.parametrize("name", SNIPPETS)
def test_every_snippet_has_twins_of_several_kinds(name: str) -> None:
    twins = candidate_twins(SNIPPETS[name])
    assert twins
    assert len(set(twins)) == len(twins)


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_made_of_what_is_not_certain(name: str) -> None:
    assert [twin for twin in candidate_twins(SILENT[name]) if twin.kind != "error"] == []


def test_everything_else_stays_byte_for_byte() -> None:
    source = (
        "import os  # é\n\ndef test_a():\n    # before\n    assert len('a') == 1  # after\n\ndef test_b():\n    pass\n"
    )
    for twin in candidate_twins(source):
        new = apply_twins(source, [twin])
        ast.parse(new)
        assert new.splitlines()[:4] == source.splitlines()[:4]
        assert new.splitlines()[5:] == source.splitlines()[5:]
        assert new.splitlines()[4].startswith("    assert ")
        assert new.splitlines()[4].endswith("  # after")


def test_inputs_never_change() -> None:
    source = (
        "from shop import f\ndef test_a():\n    x = 4\n    assert f(x, 7, 'seven') == [x, 9]\n    assert f(x) == x\n"
    )
    for twin in candidate_twins(source):
        new = apply_twins(source, [twin])
        assert "x = 4" in new
        assert "f(x, 7, 'seven')" in new


def test_twins_of_different_functions_lie_together() -> None:
    source = "def test_a():\n    assert len('a') == 1\ndef test_b():\n    assert len('ab') == 2\n"
    by_function = {twin.function: twin for twin in candidate_twins(source)}
    new = apply_twins(source, list(by_function.values()))
    assert len(by_function) == 2
    assert all(new.splitlines()[line] != source.splitlines()[line] for line in (1, 3))


def test_two_twins_on_one_function_are_refused() -> None:
    source = "def test_a():\n    assert len('a') == 1\n"
    first, second, *_ = candidate_twins(source)
    with pytest.raises(ValueError, match="more than one twin"):
        apply_twins(source, [first, second])


def test_edits_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        apply_twins(
            "assert 12",
            [Twin("a", "k", (SourceEdit(7, 9, "3"),)), Twin("b", "k", (SourceEdit(8, 9, "4"),))],
        )


def test_the_same_file_gives_the_same_twins() -> None:
    assert candidate_twins(SNIPPETS["unittest"]) == candidate_twins(SNIPPETS["unittest"])


def test_twins_are_json() -> None:
    assert json.loads(json.dumps([asdict(twin) for twin in candidate_twins(SNIPPETS["cases"])]))


@pytest.mark.parametrize(
    "expected",
    [
        "dict([('a', 1), ('a', 2)])",
        "{'a': 1, 'a': 2}",
        "sorted([2], reverse=True)",
        "list({'a': 1})",
        "set('aeab')",
        "collections.Counter({'a': 0})",
        "fractions.Fraction(0, 5)",
        "collections.deque([1, 2], maxlen=1)",
        "','.join({'a': 1})",
        "0 * 5",
        "ANY",
    ],
)
def test_constants_that_may_not_matter_are_left_alone(expected: str) -> None:
    source = (
        f"import collections, fractions\nfrom unittest.mock import ANY\ndef test_a():\n    assert f() == {expected}\n"
    )
    assert {twin.kind for twin in candidate_twins(source)} <= {"negation", "opposite", "unequal"} | (
        {"literal"} if expected.startswith("sorted") else set()
    )
    if expected.startswith("sorted"):
        assert all("reverse=True" in apply_twins(source, [twin]) for twin in candidate_twins(source))
