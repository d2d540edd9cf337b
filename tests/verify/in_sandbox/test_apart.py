"""Suites that use files, environment, patches, programs, output, warnings, logs and coroutines, with the code apart.

The packages and their suites are text files beside this one: a configuration tool and a queue of jobs.
"""

import re
from pathlib import Path

from tests.verify.in_sandbox.split_task import failures, run_apart

_APART = Path(__file__).parent / "apart"


def _text(name: str) -> str:
    return (_APART / f"{name}.txt").read_text()


def _names(*files: str) -> list[str]:
    names = []
    for file in files:
        owner = ""
        for indent, kind, name in re.findall(r"^( *)(?:async )?(def|class) (\w+)", _text(file), re.MULTILINE):
            owner = f"{name}::" if kind == "class" and not indent else owner if indent else ""
            if name.startswith("test_") and len(indent) == 4 * bool(owner):
                names.append(f"{file}::{owner}{name}")
    return names


def test_a_suite_about_what_surrounds_the_code() -> None:
    suite = ("test_files.py", "test_around.py")
    run = run_apart(
        {"settings/__init__.py": _text("settings.py"), "settings/__main__.py": _text("settings_main.py")},
        {name: _text(name) for name in suite},
        _names(*suite),
        {"data/in.json": '{"k": 1}'},
    )
    assert len(run.outcomes) == 28
    assert failures(run) == {}
    assert not run.events


def test_a_suite_about_coroutines() -> None:
    run = run_apart({"jobs.py": _text("jobs.py")}, {"test_jobs.py": _text("test_jobs.py")}, _names("test_jobs.py"))
    assert len(run.outcomes) == 10
    assert failures(run) == {}


def test_a_test_file_and_an_unnamed_file_never_reach_the_code() -> None:
    code = """
        import os
        def find(name):
            return [where for where, _, files in os.walk("/workspace") if name in files]
        def read(path):
            return open(path).read()
        def spoil(parts):
            open("/".join(parts)[1:] + "/expected", "w").write("theirs")
    """
    suite = """
        import pathlib, pytest, probe
        def test_files(tmp_path):
            here = pathlib.Path(__file__)
            (tmp_path / "expected").write_text("mine")
            (tmp_path / "shown").write_text("shown")
            assert probe.read(tmp_path / "shown") == "shown"
            for path in (here, here.parent / "golden.txt"):
                assert probe.find(path.name) == []
            with pytest.raises(FileNotFoundError):
                probe.read(here)
            probe.spoil(tmp_path.parts)
            assert (tmp_path / "expected").read_text() == "mine"
    """
    run = run_apart({"probe.py": code}, {"test_probe.py": suite}, ["test_probe.py::test_files"], {"golden.txt": "5"})
    assert failures(run) == {}
