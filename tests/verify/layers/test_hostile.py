"""Every layer on every kind of odd source: an answer, in time, and never an exception."""

from pathlib import Path

import pytest

from gametape.core.task import Architecture, ImportContract
from gametape.verify.layers import run_layers
from gametape.verify.static_analysis.analyzer import StaticAnalyzer
from gametape.verify.verifier_run import VerifierRun
from tests.verify.layers.toy_task import run, scoring_context, toy_task
from tests.verify.static_analysis.test_python_source import ODD

MORE = {
    "empty": b"",
    "huge number": b"def f():\n    return 0x" + b"f" * 50_000 + b"\n",
    "long string": b"def f():\n    return '" + b"x" * 500_000 + b"'\n",
    "lone surrogate": b"def f():\n    return '\\ud800'\n",
    "nested functions": b"".join(b" " * n + b"def f%d(x):\n" % n for n in range(90)) + b" " * 90 + b"pass\n",
    "deep but legal": b"def f():\n    return " + b"(" * 150 + b"1" + b")" * 150 + b"\n",
    "long chain": b"def f():\n    return 1" + b" + 1" * 900 + b"\n",
    "many arguments": b"def f(" + b", ".join(b"a%d" % n for n in range(1_000)) + b"): ...\n",
    "one line": b"; ".join(b"x%d = 1" % n for n in range(3_000)) + b"\n",
    "line separators": "def f():\n    return '\u2028\x85\x0c'\n".encode(),
    "old line ends": b"def f():\r    return 1\r",
    "byte order mark": b"\xef\xbb\xbfdef f():\n    return 1\n",
    "star imports": b"from m import *\n" * 500,
    "tabs": b"def f():\n\tif x:\n\t\treturn 1\n        return 2\n",
}

START = {
    "src/m.py": "def f():\n    raise NotImplementedError\n",
    "src/n.py": "from m import f\n\n\ndef g():\n    return f()\n",
}
RULES = Architecture(
    contracts=[ImportContract(importer="n", forbidden=["os"])],
    layers=["n", "m"],
    forbidden_modules=["pickle"],
    public_api={"m": ["f()"]},
)
TASK = toy_task(START, {"src/m.py": "def f():\n    return 1\n"}, architecture=RULES)


@pytest.fixture(scope="module")
def analyzer(tmp_path_factory: pytest.TempPathFactory) -> StaticAnalyzer:
    return StaticAnalyzer(tmp_path_factory.mktemp("home"))


@pytest.mark.parametrize("content", [*ODD.values(), *MORE.values()], ids=[*ODD, *MORE])
def test_every_layer_answers(analyzer: StaticAnalyzer, content: bytes) -> None:
    runs = (run(a="passed", b="passed"), VerifierRun(outcomes={}, covered={"src/m.py": frozenset({1})}))
    found = run_layers(scoring_context(TASK, {"src/m.py": content}, runs=runs, analyzer=analyzer), "full")
    assert [check.name for check in found] == ["tests", "runtime", "architecture", "types", "lint", "diff", "quality"]
    assert all(len(check.detail) < 5_000 for check in found)


def test_odd_files_of_the_task_itself_are_no_trouble(tmp_path: Path) -> None:
    odd = {f"src/odd{index}.py": content for index, content in enumerate([*ODD.values(), *MORE.values()])}
    task = toy_task({**START, **odd}, {"src/m.py": "def f():\n    return 1\n"})
    solved = scoring_context(
        task, {"src/m.py": "def f():\n    return 0 + 1\n"}, runs=(run(a="passed", b="passed"),), home=tmp_path
    )
    found = {check.name: check.score for check in run_layers(solved, "full")}
    assert set(found) >= {"tests", "runtime", "diff", "quality"}
    assert found["quality"] == 1.0
