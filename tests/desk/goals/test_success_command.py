"""What is read from a success command, and what is refused."""

import pytest

from gametape.core.errors import BadInput
from gametape.desk.goals.success_command import PytestRun, ShellCommand, read_command
from gametape.record.source_tree import SourceTree


@pytest.mark.parametrize(
    ("text", "targets", "selecting"),
    [
        ("pytest", (), ()),
        ("python -m pytest -q tests", ("tests",), ()),
        ("CI=1 python3.11 -m pytest -x --tb=short ./tests/test_a.py::test_b", ("tests/test_a.py::test_b",), ()),
        ("pytest -qq -k 'slow and not net' -m unit", (), ("-k", "slow and not net", "-m", "unit")),
        ("pytest -kfast --deselect=a.py::b --ignore x", (), ("-k", "fast", "--deselect", "a.py::b", "--ignore", "x")),
        ("uv run pytest --cov=pkg -n 4 -p no:cacheprovider", (), ()),
        ("coverage run -m pytest tests", ("tests",), ()),
        ("/opt/env/bin/pytest -- tests", ("tests",), ()),
        ("cd sub && pytest tests", ("sub/tests",), ()),
    ],
)  # fmt: skip
def test_a_run_of_pytest(text: str, targets: tuple[str, ...], selecting: tuple[str, ...]) -> None:
    (run,) = read_command(text).conditions
    assert isinstance(run, PytestRun)
    assert (run.targets, run.selection_options) == (targets, selecting)


def test_conditions_are_joined_and_everything_else_counts_by_its_exit_code() -> None:
    criterion = read_command("ruff check . && pytest -q && make docs | tail -1".replace(" | tail -1", ""))
    assert [type(one) for one in criterion.conditions] == [ShellCommand, PytestRun, ShellCommand]
    (whole,) = read_command("make check | tee log; true").conditions
    assert isinstance(whole, ShellCommand)


def test_files_that_decide_what_a_command_does_are_known() -> None:
    tree = SourceTree(dict.fromkeys(("Makefile", "tools/check.sh", "main.py", "sub/Makefile"), b""))
    assert read_command("make test").shell_commands[0].pinned_files(tree) == {"Makefile"}
    assert read_command("sh ./tools/check.sh").shell_commands[0].pinned_files(tree) == {"tools/check.sh"}
    assert read_command("cd sub && make").shell_commands[0].pinned_files(tree) == {"sub/Makefile"}
    assert "sub/Makefile" in read_command("make -Csub").shell_commands[0].pinned_files(tree)
    assert "tools/check.sh" in read_command("sh -c 'cd tools; sh check.sh'").shell_commands[0].pinned_files(tree)
    assert read_command("python -m main").shell_commands[0].pinned_files(tree) == {"main.py"}
    assert read_command("make main").shell_commands[0].pinned_files(tree) == {"Makefile"}


def test_files_that_a_file_of_the_command_runs_are_known() -> None:
    makefile = b"include more.mk\ncheck:\n\t./tools/check && python main.py\n"
    files = {"Makefile": makefile, "more.mk": b"\tsh deep.sh", "deep.sh": b"", "tools/check": b"#!/bin/sh\n"}
    tree = SourceTree({**files, "main.py": b"", "other.sh": b""})
    assert read_command("make check").shell_commands[0].pinned_files(tree) == set(files)


def test_files_that_would_take_the_place_of_those_are_known() -> None:
    tree = SourceTree(dict.fromkeys(("Makefile", "package.json"), b""))
    assert read_command("make").shell_commands[0].forbidden_files(tree) == {"GNUmakefile", "makefile"}
    assert read_command("npm test").shell_commands[0].forbidden_files(tree) == {".npmrc"}
    assert read_command("just").shell_commands[0].forbidden_files(tree) == set(), (
        "what is not there at all may be written"
    )


@pytest.mark.parametrize(
    "text",
    [
        *("", "  ", "pytest 'a", "pytest && ", "cd tests", "cd .. && pytest", "pytest ../other", "pytest /etc"),
        *("pytest | tail", "pytest; true", "pytest || true", "sh -c 'pytest'", "echo $(pytest)", "true\npytest"),
        *(
            "pytest -p helper",
            "pytest -c other.ini",
            "pytest -o addopts=",
            "pytest --rootdir=x",
            "pytest --collect-only",
        ),
    ],
)
def test_what_could_not_be_protected_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        read_command(text)
