"""What a worker may do to the surroundings of the test process."""

import logging
import os
import warnings
from pathlib import Path
from typing import Any

import pytest

from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.proxy_session import ProxySession
from gametape.verify.in_sandbox.proxy_surroundings import Surroundings
from gametape.verify.in_sandbox.scratch_files import MOST_CHANGES
from gametape.verify.in_sandbox.wire import WireError
from tests.verify.in_sandbox.impostor import Extended, Impostor, impostor


def _happen(scratch: Path, effects: Any, sent: Any = "nothing", workspace: Path | None = None) -> None:
    """A call whose answer has these effects, after the test has sent something."""

    def script(worker: Impostor) -> None:
        while True:
            request = worker.request()
            is_call = request[2] == words.CALL
            worker.send(words.RETURN, request[1], None, (), ("", "", effects) if is_call else None)

    with impostor(script) as session:
        _surround(session, scratch, workspace)
        session.ask(words.CALL, 1, (sent,), None)


def _surround(session: ProxySession, scratch: Path, workspace: Path | None) -> None:
    surroundings = Surroundings(session, frozenset({"pkg"}), (str(scratch),))
    if workspace is not None:
        surroundings._workspace = str(workspace)
        surroundings._roots = (str(scratch), str(workspace))


def _file(path: Path, text: str = "theirs") -> dict[str, Any]:
    return {"files": [(str(path), (text.encode(), 0o644))]}


def test_a_file_of_the_code_is_written_and_removed(tmp_path: Path) -> None:
    _happen(tmp_path, _file(tmp_path / "sub" / "new.txt"))
    assert (tmp_path / "sub" / "new.txt").read_text() == "theirs"
    _happen(tmp_path, {"files": [(str(tmp_path / "sub" / "new.txt"), None)]}, str(tmp_path / "sub"))
    assert not (tmp_path / "sub" / "new.txt").exists()


@pytest.mark.parametrize(
    "effects",
    [
        {"files": [("/etc/passwd", (b"", 0o644))]},
        {"files": [("{}/../outside", (b"", 0o644))]},
        {"files": [("{}//a", (b"", 0o644))]},
        {"files": [("{}/" + "a" * 300, (b"", 0o644))]},
        {"files": [("{}/a", ("text", 0o644))]},
        {"files": [("{}/a", (b"", 0o644, 1))]},
        {"files": [(b"{}/a", None)]},
        {"files": [("{}/a", None)] * (MOST_CHANGES + 1)},
        {"files": "{}/a"},
        {"environment": {"A": 1}},
        {"environment": ["A"]},
        {"levels": {"root": "high"}},
        {"warnings": ["old"]},
        {"warnings": [Extended(words.ERROR, ("ValueError", ("x",), None, "x", None, {}))]},
        {"records": [("root", 30)]},
        {"records": [("root", 30, "text", "no exception")]},
        {"directory": "/"},
        ["files"],
    ],
)
def test_effects_that_no_honest_worker_has_end_the_connection(tmp_path: Path, effects: Any) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    if isinstance(effects, dict) and isinstance(effects.get("files"), list):
        changes = [
            (path.replace("{}", str(scratch)) if isinstance(path, str) else path, content)
            for path, content in effects["files"]
        ]
        effects = {"files": changes}
    with pytest.raises(WireError):
        _happen(scratch, effects)
    assert not (tmp_path / "outside").exists()


def test_links_are_not_followed(tmp_path: Path) -> None:
    scratch, outside = tmp_path / "scratch", tmp_path / "outside"
    scratch.mkdir()
    outside.mkdir()
    (outside / "file").write_text("mine")
    (scratch / "directory").symlink_to(outside)
    (scratch / "file").symlink_to(outside / "file")
    os.link(outside / "file", scratch / "hard")
    os.mkfifo(scratch / "pipe")
    for name in ("directory/new", "directory/file", "file", "hard", "pipe"):
        _happen(scratch, _file(scratch / name), str(scratch))
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["conftest.py", "__pycache__/x.pyc", "pytest.ini", "a.pth", "x.so", "sitecustomize.py"]
)
def test_what_python_or_pytest_reads_by_itself_is_not_written(tmp_path: Path, name: str) -> None:
    _happen(tmp_path, _file(tmp_path / name), str(tmp_path))
    assert not (tmp_path / name).exists()


def test_a_file_of_the_test_is_changed_only_where_the_test_named_it(tmp_path: Path) -> None:
    expected = tmp_path / "expected.txt"
    expected.write_text("mine")
    _happen(tmp_path, _file(expected), str(tmp_path / "other.txt"))
    _happen(tmp_path, {"files": [(str(expected), None)]})
    assert expected.read_text() == "mine"
    _happen(tmp_path, _file(expected), expected)
    assert expected.read_text() == "theirs"


def test_the_workspace_is_not_changed(tmp_path: Path) -> None:
    scratch, workspace = tmp_path / "scratch", tmp_path / "workspace"
    scratch.mkdir()
    workspace.mkdir()
    golden = workspace / "golden.txt"
    golden.write_text("mine")
    for path in (golden, workspace / "helper.py", workspace / "setup.cfg"):
        _happen(scratch, _file(path), str(workspace / "golden.txt"), workspace)
    _happen(scratch, {"files": [(str(golden), None)]}, str(golden), workspace)
    assert [(path.name, path.read_text()) for path in workspace.iterdir()] == [("golden.txt", "mine")]
    _happen(scratch, _file(workspace / "out.txt"), "out.txt", workspace)
    assert (workspace / "out.txt").read_text() == "theirs"


def test_python_code_of_the_code_under_test_is_not_run_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _happen(tmp_path, _file(tmp_path / "made_by_the_code.py", "raise KeyError('it ran')"))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RuntimeError, match="not run in the test process"):
        __import__("made_by_the_code")


def test_variables_that_change_what_programs_run_are_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIN", "before")
    before = dict(os.environ)
    barred = ["PATH", "PYTHONPATH", "LD_PRELOAD", "PYTEST_ADDOPTS", "BASH_ENV", "HOME", "A=B", ""]
    _happen(tmp_path, {"environment": dict.fromkeys(barred, "x")})
    assert dict(os.environ) == before
    _happen(tmp_path, {"environment": {"PLAIN": "after"}})
    assert os.environ["PLAIN"] == "after"


def test_warnings_and_records_are_those_of_the_line_of_the_test(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = Extended(words.ERROR, ("DeprecationWarning", ("old",), None, "old", None, {}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _happen(tmp_path, {"warnings": [old]})
    assert [(entry.category, entry.filename) for entry in caught] == [(DeprecationWarning, __file__)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DeprecationWarning):
            _happen(tmp_path, {"warnings": [old]})
    _happen(tmp_path, {"records": [("pkg", logging.ERROR, "%s %s", None)], "levels": {"other": 10}})
    assert caplog.record_tuples == [("pkg", logging.ERROR, "%s %s")]
    assert logging.getLogger("other").level == logging.NOTSET
