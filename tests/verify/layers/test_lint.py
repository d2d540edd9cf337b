import pytest

from gametape.core.verdict import Check
from gametape.record.loaded_task import LoadedTask
from gametape.verify.layers import lint
from gametape.verify.static_analysis.analyzer import StaticAnalyzer
from tests.verify.layers.toy_task import Files, scoring_context, toy_task

START = {"src/m.py": "import os\n\n\ndef f():\n    raise NotImplementedError\n"}
REFERENCE = {"src/m.py": "import os\nimport sys\n\n\ndef f():\n    return os.sep\n"}
TASK = toy_task(START, REFERENCE)


@pytest.fixture(scope="module")
def analyzer(tmp_path_factory: pytest.TempPathFactory) -> StaticAnalyzer:
    return StaticAnalyzer(tmp_path_factory.mktemp("home"))


def score(analyzer: StaticAnalyzer, written: Files, of: LoadedTask = TASK) -> Check:
    check = lint.score(scoring_context(of, written, analyzer=analyzer))
    assert check is not None
    return check


def test_what_the_task_itself_has_is_not_new(analyzer: StaticAnalyzer) -> None:
    assert score(analyzer, {"src/m.py": "\n\nimport os\nimport sys\n\n\ndef f():\n    return '/'\n"}).score == 1.0


def test_new_findings_are_named(analyzer: StaticAnalyzer) -> None:
    check = score(analyzer, {"src/m.py": "def f(x=[]):\n    return undefined\n"})
    assert check.score == pytest.approx(1 / 3)
    assert "src/m.py:1" in check.detail
    assert "F821" in check.detail


@pytest.mark.parametrize(
    "text",
    [
        "import json  # noqa\n",
        "# ruff: noqa\nimport json\n",
        "# flake8: noqa\nimport json\n",
        "import json  # ruff: ignore[F401]\n",
        "# ruff: disable[F401]\nimport json\n# ruff: enable[F401]\n",
        "# ruff: file-ignore[F401]\nimport json\n",
    ],
)
def test_comments_do_not_silence_the_linter(analyzer: StaticAnalyzer, text: str) -> None:
    assert score(analyzer, {"src/m.py": text + REFERENCE["src/m.py"]}).score == 0.5


@pytest.mark.parametrize("name", ["ruff.toml", ".ruff.toml", "src/ruff.toml", "pyproject.toml", "src/.gitignore"])
def test_configuration_of_the_attempt_is_not_read(analyzer: StaticAnalyzer, name: str) -> None:
    text = "[tool.ruff]\nexclude = ['*']\n" if "pyproject" in name else "exclude = ['*']\n*\n"
    assert score(analyzer, {"src/m.py": "import json\n" + REFERENCE["src/m.py"], name: text}).score == 0.5


@pytest.mark.parametrize("path", ["src/build/m.py", "src/-x.py", "src/@x.py", "src/with space.py", "src/.hidden/é.py"])
def test_every_file_is_looked_at(analyzer: StaticAnalyzer, path: str) -> None:
    assert score(analyzer, {path: "import json\n"}).score == 0.5


@pytest.mark.parametrize(
    "content",
    [b"def f(:\n", b"x = 1\0\n", b"x = '\xe9'\n", b"x = " + b"-" * 100_000 + b"1\n"],
    ids=["syntax error", "null byte", "not utf-8", "deep"],
)
def test_what_cannot_be_linted_scores_nothing(analyzer: StaticAnalyzer, content: bytes) -> None:
    assert score(analyzer, {"src/m.py": content}).score == 0.0


def test_other_encodings_are_read(analyzer: StaticAnalyzer) -> None:
    assert score(analyzer, {"src/m.py": b"# coding: latin-1\nimport json\nx = '\xe9'\n"}).score == 0.5
    assert score(analyzer, {"src/m.py": b""}).score == 1.0
