import venv
from dataclasses import replace
from pathlib import Path

import pytest

from gametape.core.verdict import Check
from gametape.record.loaded_task import LoadedTask
from gametape.verify.layers import types
from gametape.verify.static_analysis.analyzer import StaticAnalyzer
from tests.verify.layers.toy_task import Files, scoring_context, toy_task

START = {
    "src/p/__init__.py": "",
    "src/p/old.py": "def f(x: int) -> str:\n    return x\n",
    "src/p/new.py": "def g(x: int) -> int:\n    raise NotImplementedError\n",
    "tools/helper.py": "def h() -> int:\n    return 1\n",
}
REFERENCE = {"src/p/new.py": "from p.old import f\n\n\ndef g(x: int) -> int:\n    return f(x)\n"}
GOOD = "def g(x: int) -> int:\n    return x + 1\n"
WRONG = "def g(x: int) -> int:\n    return [x]\n"
TASK = toy_task(START, REFERENCE)


@pytest.fixture(scope="module")
def analyzer(tmp_path_factory: pytest.TempPathFactory) -> StaticAnalyzer:
    return StaticAnalyzer(tmp_path_factory.mktemp("home"))


def score(analyzer: StaticAnalyzer, written: Files, of: LoadedTask = TASK) -> Check:
    check = types.score(scoring_context(of, written, analyzer=analyzer))
    assert check is not None
    return check


def test_no_new_error_is_a_full_score(analyzer: StaticAnalyzer) -> None:
    assert score(analyzer, {"src/p/new.py": GOOD}).score == 1.0


def test_errors_of_the_reference_are_held_against_nobody(analyzer: StaticAnalyzer) -> None:
    moved = "\n\n\n" + REFERENCE["src/p/new.py"].replace("g(x: int)", "g(y: int)").replace("f(x)", "f(y)")
    assert score(analyzer, {"src/p/new.py": moved}).score == 1.0


def test_old_errors_may_move_but_not_multiply(analyzer: StaticAnalyzer) -> None:
    moved = "# a\n# b\n\n" + START["src/p/old.py"]
    assert score(analyzer, {"src/p/new.py": GOOD, "src/p/old.py": moved}).score == 1.0
    twice = START["src/p/old.py"] + "\n\ndef k(x: int) -> str:\n    return x\n"
    assert score(analyzer, {"src/p/new.py": GOOD, "src/p/old.py": twice}).score == 0.5


def test_new_errors_lower_the_score_and_are_named(analyzer: StaticAnalyzer) -> None:
    check = score(analyzer, {"src/p/new.py": WRONG})
    assert check.score == 0.5
    assert "src/p/new.py:2" in check.detail
    two = WRONG + '\n\ny: int = "two"\n'
    assert score(analyzer, {"src/p/new.py": two}).score < check.score


def test_bodies_without_annotations_are_checked(analyzer: StaticAnalyzer) -> None:
    assert score(analyzer, {"src/p/new.py": 'def g(x):\n    return 1 + "one"\n'}).score < 1.0


@pytest.mark.parametrize(
    "text",
    [
        "def g(x: int) -> int:\n    return [x]  # type: ignore\n",
        "def g(x: int) -> int:\n    return [x]  #type:ignore[return-value]\n",
        "# mypy: ignore-errors\n" + WRONG,
        '# mypy: disable-error-code="return-value"\n' + WRONG,
        "# type: ignore\n" + WRONG,
        "from typing import no_type_check\n\n\n@no_type_check\n" + WRONG,
        "from typing import TYPE_CHECKING\n\nif not TYPE_CHECKING:\n    def g(x):\n        return 1 + ''\n",
        GOOD + "y = 1  # type: ignore\n",
    ],
)
def test_silencing_the_checker_does_not_help(analyzer: StaticAnalyzer, text: str) -> None:
    assert score(analyzer, {"src/p/new.py": text}).score <= 0.5


def test_hiding_an_error_costs_what_having_it_costs(analyzer: StaticAnalyzer) -> None:
    assert score(analyzer, {"src/p/new.py": WRONG.rstrip() + "  # type: ignore\n"}).score == 0.5


def test_a_stub_beside_the_module_does_not_help(analyzer: StaticAnalyzer) -> None:
    stub = {"src/p/new.pyi": "def g(x: int) -> int: ...\n"}
    assert score(analyzer, {"src/p/new.py": WRONG, **stub}).score < 0.5
    assert score(analyzer, {"src/p/new.py": GOOD, **stub}).score == 0.5


@pytest.mark.parametrize(
    "name", ["mypy.ini", "src/mypy.ini", "src/p/mypy.ini", "setup.cfg", "pyproject.toml", ".mypy.ini"]
)
def test_configuration_of_the_attempt_is_not_read(analyzer: StaticAnalyzer, name: str) -> None:
    text = "[tool.mypy]\nignore_errors = true\n" if name.endswith("toml") else "[mypy]\nignore_errors = True\n"
    assert score(analyzer, {"src/p/new.py": WRONG, name: text}).score == 0.5


def test_silencers_of_the_task_itself_are_known(analyzer: StaticAnalyzer) -> None:
    start = {
        "src/a.py": '# mypy: ignore-errors\nx: int = "a"  # type: ignore\n'
        "def g() -> int:\n    raise NotImplementedError\n"
    }
    task = toy_task(start, {"src/a.py": start["src/a.py"].replace("raise NotImplementedError", "return 1")})
    assert (
        score(
            analyzer, {"src/a.py": start["src/a.py"].replace("raise NotImplementedError", "return 1 + 0")}, task
        ).score
        == 1.0
    )
    wrong = start["src/a.py"].replace("raise NotImplementedError", 'return "a"')
    assert score(analyzer, {"src/a.py": wrong}, task).score == 0.5


def test_missing_imports_are_ignored_and_helpers_are_seen(analyzer: StaticAnalyzer) -> None:
    text = "import no_such_package\n\n\ndef g(x: int) -> int:\n    return int(no_such_package.f(x))\n"
    assert score(analyzer, {"src/p/new.py": text}).score == 1.0


ODD: dict[str, str | bytes] = {
    "syntax error": "def g(:\n",
    "null byte": b"x = 1\0\n",
    "not utf-8": b"x = '\xe9'\n",
    "unknown encoding": b"# coding: klingon\nx = 1\n",
    "deep sum": "x = " + "+".join(["1"] * 30_000),
    "deep unary": "x = " + "-" * 30_000 + "1",
}


@pytest.mark.parametrize("content", ODD.values(), ids=ODD.keys())
def test_what_cannot_be_checked_scores_nothing(analyzer: StaticAnalyzer, content: str | bytes) -> None:
    check = score(analyzer, {"src/p/new.py": content})
    assert check.score == 0.0
    assert "src/p/new.py" in check.detail or "crashed" in check.detail


def test_a_huge_file_is_checked_or_refused_but_never_raises(analyzer: StaticAnalyzer) -> None:
    check = score(analyzer, {"src/p/new.py": GOOD + "value = [\n" + "    1,\n" * 200_000 + "]\n"})
    assert 0.0 <= check.score <= 1.0


def test_templates_of_the_task_that_are_no_python_are_left_alone(analyzer: StaticAnalyzer) -> None:
    start = {**START, "src/p/template.py": "class {{ name }}:\n    pass\n"}
    task = toy_task(start, REFERENCE)
    assert score(analyzer, {"src/p/new.py": GOOD}, task).score == 1.0
    assert score(analyzer, {"src/p/new.py": WRONG}, task).score == 0.5


def test_a_task_that_cannot_be_checked_has_no_such_layer(analyzer: StaticAnalyzer) -> None:
    deep = {"src/p/deep.py": "x = " + "+".join(["1"] * 30_000)}
    task = toy_task({**START, **deep, "src/p/new.py": "from p import deep\n" + START["src/p/new.py"]}, REFERENCE)
    check = types.score(scoring_context(task, {"src/p/new.py": "from p import deep\n" + GOOD}, analyzer=analyzer))
    assert check is None or check.score == 1.0


@pytest.mark.parametrize("name", ["typing", "builtins", "types", "abc", "collections/__init__"])
def test_a_module_in_place_of_the_standard_library_does_not_blind_the_checker(
    analyzer: StaticAnalyzer, name: str
) -> None:
    shadow = "def __getattr__(name): ...\n"
    assert score(analyzer, {"src/p/new.py": WRONG, f"src/{name}.py": shadow}).score <= 0.5


def test_packages_of_the_tasks_own_interpreter_are_seen(analyzer: StaticAnalyzer, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    library = next((tmp_path / "venv" / "lib").glob("python3*")) / "site-packages" / "typed_thing"
    library.mkdir()
    (library / "__init__.py").write_text("def number() -> int: return 1\n")
    (library / "py.typed").write_text("")
    task = replace(TASK, interpreter=tmp_path / "venv" / "bin" / "python")
    text = "import typed_thing\n\n\ndef g(x: int) -> int:\n    return typed_thing.number(){}\n"
    assert score(analyzer, {"src/p/new.py": text.format("")}, task).score == 1.0
    wrong = text.format(".no_such_attribute")
    assert score(analyzer, {"src/p/new.py": wrong}, task).score == 0.5
    assert score(analyzer, {"src/p/new.py": wrong}).score == 1.0
