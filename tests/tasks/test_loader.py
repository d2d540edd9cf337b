import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gametape.core.errors import BadInput, MissingDependency
from gametape.core.task import Origin
from gametape.tasks.loader import load_task, read_task

from .made import TASKS, split_subject, staged_subject, subject, written

Breaking = Callable[[Path], object]


def edit(name: str, old: str, new: str) -> Breaking:
    def breaking(task: Path) -> None:
        text = (task / name).read_text()
        assert old in text
        (task / name).write_text(text.replace(old, new, 1))

    return breaking


def remove(name: str) -> Breaking:
    return lambda task: (task / name).unlink()


def write(name: str, content: str) -> Breaking:
    def breaking(task: Path) -> None:
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(content)

    return breaking


def link(name: str, target: str) -> Breaking:
    return lambda task: (task / name).symlink_to(target)


def refusal(task: Path) -> str:
    with pytest.raises(BadInput) as caught:
        load_task(task)
    message = str(caught.value)
    assert "\n" not in message
    return message


OURS = "task.toml: metadata.gametape."
BROKEN: dict[str, tuple[Breaking, str]] = {
    "no task.toml": (remove("task.toml"), "task: expected a task directory, but there is no task.toml in it"),
    "bad TOML": (write("task.toml", "mode = = 1"), "task.toml: not TOML: "),
    "not UTF-8": (
        lambda task: (task / "task.toml").write_bytes(b"\xff"),
        "task.toml: expected UTF-8, but byte 0 is not",
    ),
    "an unknown key": (
        edit("task.toml", "[metadata.gametape]", "[metadata.gametape]\nmood = 1"),
        OURS + "mood: there is no such field",
    ),
    "an unknown role of tests": (
        edit("task.toml", "held_out =", "hidden ="),
        OURS + "tests.hidden: there is no such field",
    ),
    "a missing key": (edit("task.toml", 'mode = "shared"', ""), OURS + "mode: expected a value"),
    "no name": (edit("task.toml", 'name = "made/add"', ""), "task.toml: task.name: expected a value"),
    "no table of ours": (write("task.toml", '[task]\nname = "a"\n'), "task.toml: metadata: expected a value"),
    "a wrong type": (
        edit("task.toml", '[\n    "add.py",\n    "old.py",\n]', '"add.py"'),
        OURS + "source_paths: expected a valid list",
    ),
    "something else in place of a table": (
        write("task.toml", "task = 1\nmetadata = []\n"),
        "task.toml: task: expected a table; metadata: expected a table",
    ),
    "a weight for nothing": (
        edit(
            "task.toml", "[metadata.gametape.tests]", "[metadata.gametape.weights]\ntset = 1\n[metadata.gametape.tests]"
        ),
        OURS + "weights.tset: expected a layer of the reward (tests, ",
    ),
    "a visible test that is not the one that is run": (
        edit("environment/workspace/tests/test_add.py", "== 3", "== 4"),
        "environment/workspace/tests/test_add.py: expected the same as tests/suite/tests/test_add.py",
    ),
    "a wrong choice": (edit("task.toml", '"shared"', '"open"'), OURS + "mode: expected 'replay', 'split' or 'shared'"),
    "a limit that is none": (
        edit("task.toml", "[metadata.gametape]", "[verifier]\ntimeout_sec = 0\n[metadata.gametape]"),
        "task.toml: verifier.timeout_sec: expected greater than 0",
    ),
    "nothing to make pass": (
        edit("task.toml", 'fail_to_pass = [\n    "tests/test_add.py::test_small",\n]', "fail_to_pass = []"),
        OURS + "tests.fail_to_pass: expected at least one test",
    ),
    "a test in two roles": (
        edit("task.toml", "pass_to_pass = []", 'pass_to_pass = ["tests/test_add.py::test_small"]'),
        OURS + "tests.pass_to_pass: expected no test that is in fail_to_pass",
    ),
    "a path that leads out": (
        edit("task.toml", '"old.py"', '"../old.py"'),
        OURS + "source_paths[1]: expected a path inside the workspace",
    ),
    "a test id without a test": (
        edit("task.toml", "test_add.py::test_small", "test_add.py"),
        OURS + "tests.fail_to_pass[0]: expected a test id like",
    ),
    "a test that is not in the suite": (
        remove("tests/suite/tests/test_add_held_out.py"),
        OURS
        + "tests.held_out[0]: expected a test of the suite, but tests/suite/tests/test_add_held_out.py is not there",
    ),
    "a visible test that nobody sees": (
        remove("environment/workspace/tests/test_add.py"),
        OURS + "tests.fail_to_pass[0]: expected a test that the agent sees",
    ),
    "a held-out test in the workspace": (
        write("environment/workspace/tests/test_add_held_out.py", "def test_large():\n    assert True\n"),
        "tests/test_add_held_out.py: expected no held-out test, but tests/test_add_held_out.py::test_large is in it",
    ),
    "a held-out file under another name": (
        lambda task: (task / "environment/workspace/notes.txt").write_bytes(
            (task / "tests/suite/tests/test_add_held_out.py").read_bytes()
        ),
        "notes.txt: expected no held-out test, but all of tests/test_add_held_out.py is in it",
    ),
    "a source that does not exist": (
        edit("task.toml", '"old.py"', '"old.py", "sub.py"'),
        OURS + "source_paths[2]: expected a path in the workspace, but sub.py is not there",
    ),
    "a suite beside the test paths": (
        write("tests/suite/add.py", "def add(a, b): ...\n"),
        "tests/suite/add.py: expected a file below test_paths",
    ),
    "a solution beside the sources": (
        write("solution/files/tests/test_add.py", ""),
        "solution/files/tests/test_add.py: expected a file below source_paths",
    ),
    "a deletion of nothing": (
        write("solution/deleted.txt", "gone.py\n"),
        "solution/deleted.txt: expected files of the workspace below source_paths, but gone.py is not",
    ),
    "split without a surface": (
        edit("task.toml", 'mode = "shared"', 'mode = "split"'),
        OURS + "split: expected what the tests import, in split mode",
    ),
    "a surface in shared mode": (
        edit(
            "task.toml",
            "[metadata.gametape.tests]",
            '[metadata.gametape.split]\nmodules = ["add"]\n[metadata.gametape.tests]',
        ),
        OURS + "split: expected nothing, in shared mode",
    ),
    "a link": (link("environment/workspace/passwd", "/etc/passwd"), "passwd: expected a regular file, not a link"),
    "a linked directory": (link("solution/files/etc", "/etc"), "etc: expected a regular file, not a link"),
    "a pipe": (lambda task: os.mkfifo(task / "tests/pipe"), "pipe: expected a regular file or a directory"),
    "a name that is not text": (
        lambda task: os.close(os.open(os.fsencode(task) + b"/environment/workspace/\xff", os.O_CREAT)),
        "expected a name in UTF-8",
    ),
    "a history": (write("environment/workspace/.git/HEAD", "ref: refs/heads/main\n"), ".git: expected no history"),
    "an empty instruction": (
        write("instruction.md", " \n"),
        "instruction.md: expected an instruction, but the file is empty",
    ),
    "no instruction": (remove("instruction.md"), "instruction.md: expected an instruction, but there is no such file"),
    "no workspace": (
        lambda task: (task / "environment/workspace").rename(task / "environment/elsewhere"),
        "environment/workspace: expected a directory, but there is none",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_task_is_refused_in_one_line_that_says_what_and_where(name: str, tmp_path: Path) -> None:
    task = written(tmp_path)
    breaking, expected = BROKEN[name]
    breaking(task)
    assert expected in refusal(task)


BROKEN_STAGES: dict[str, tuple[Breaking, str]] = {
    "a stage without its instruction": (
        remove("steps/02-large/instruction.md"),
        "steps/02-large/instruction.md: expected an instruction, but there is no such file",
    ),
    "a stage without its tests": (
        edit("task.toml", "[metadata.gametape.stages.02-large]", "[metadata.gametape.stages.03-huge]"),
        OURS + 'stages["02-large"]: expected the tests of step 02-large',
    ),
    "a stage twice": (
        edit("task.toml", 'name = "02-large"', 'name = "01-small"'),
        "task.toml: steps[1].name: expected a name",
    ),
    "a stage that leaves the directory": (
        edit("task.toml", 'name = "02-large"', 'name = "../x"'),
        "task.toml: steps[1].name: expected a plain name",
    ),
    "a stage that shows what is held out": (
        edit(
            "task.toml",
            "[metadata.gametape.stages.01-small]\nfail_to_pass = [",
            '[metadata.gametape.stages.01-small]\nfail_to_pass = ["tests/test_add_held_out.py::test_large", ',
        ),
        OURS + 'stages["01-small"]: expected held-out tests under held_out, but tests/test_add_held_out.py::test_large',
    ),
    "no tests for any stage": (
        lambda task: (task / "task.toml").write_text(
            re.sub(r"(?s)\[metadata.gametape.stages.*", "", (task / "task.toml").read_text())
        ),
        OURS + "stages: expected the tests of step 01-small",
    ),
    "a stage with a test of its own": (
        edit(
            "task.toml",
            'pass_to_pass = [\n    "tests/test_add.py::test_small",\n]',
            'pass_to_pass = ["tests/test_add.py::test_x"]',
        ),
        OURS + 'stages["02-large"]: expected tests of the task',
    ),
}


@pytest.mark.parametrize("name", BROKEN_STAGES)
def test_a_broken_stage_is_refused(name: str, tmp_path: Path) -> None:
    task = written(tmp_path, staged_subject())
    breaking, expected = BROKEN_STAGES[name]
    breaking(task)
    assert expected in refusal(task)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"add",\n', '"sub",\n', "split.modules[0]: expected a module of the sources"),
        ('"add",\n]', '"add",\n]\nclasses = ["Adder"]', "split.classes[0]: expected module:Class"),
    ],
)
def test_a_surface_that_is_not_there_is_refused(old: str, new: str, expected: str, tmp_path: Path) -> None:
    task = written(tmp_path, split_subject())
    edit("task.toml", old, new)(task)
    assert expected in refusal(task)


def test_a_path_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    assert re.search("nothing: expected a task directory, but there is nothing$", refusal(tmp_path / "nothing"))
    (tmp_path / "file").write_text("")
    assert re.search("file: expected a task directory, not a file$", refusal(tmp_path / "file"))


def test_several_mistakes_are_counted(tmp_path: Path) -> None:
    task = written(tmp_path)
    edit("task.toml", 'mode = "shared"', "mood = 1\nfood = 2\nroot = 3")(task)
    assert "mood: there is no such field; " in refusal(task)
    assert refusal(task).endswith("(and 1 more)")


def test_what_harbor_and_others_add_is_left_alone(tmp_path: Path) -> None:
    task = written(tmp_path)
    edit(
        "task.toml",
        "[task]",
        "source = 'me'\n[solution]\nenv = {}\n[metadata]\ncategory = 'x'\n[task]\nauthors = [{ name = 'A' }]",
    )(task)
    assert load_task(task) == subject()


def test_what_tools_leave_behind_is_no_part_of_the_task(tmp_path: Path) -> None:
    task = written(tmp_path)
    for place in ("environment/workspace", "tests/suite/tests", "solution/files"):
        write(f"{place}/__pycache__/add.cpython-311.pyc", "x")(task)
        write(f"{place}/.pytest_cache/v/cache/lastfailed", "{}")(task)
    assert load_task(task) == subject()


def test_a_task_without_a_solution_loads(tmp_path: Path) -> None:
    task = written(tmp_path)
    (task / "solution").rename(tmp_path / "elsewhere")
    assert load_task(task).reference is None


@pytest.mark.parametrize("task", TASKS, ids=lambda path: path.name)
def test_every_task_of_ours_loads(task: Path) -> None:
    loaded = load_task(task)
    tests = loaded.task.tests
    assert len(tests.visible) >= 5
    assert len(tests.held_out) >= 3
    assert loaded.reference is not None


def test_our_tasks_are_of_every_mode() -> None:
    modes = [load_task(task).task.mode for task in TASKS]
    assert modes.count("replay") >= 7
    assert {*modes} >= {"replay", "split", "shared"}


def test_an_interpreter_that_is_there_is_taken(tmp_path: Path) -> None:
    made = written(tmp_path, replace(subject(dependencies=["pytest==1"]), interpreter=Path(sys.executable)))
    assert load_task(made).interpreter == Path(sys.executable).absolute()
    assert read_task(made).interpreter is None
    (made / "task.toml").write_text((made / "task.toml").read_text().replace(sys.executable, "bin/python"))
    (made / "bin").mkdir()
    (made / "bin/python").touch()
    assert load_task(made).interpreter == made / "bin/python"


def test_an_interpreter_that_is_gone_is_bad_input_without_a_home(tmp_path: Path) -> None:
    made = written(tmp_path, replace(subject(dependencies=["pytest==1"]), interpreter=Path(sys.executable)))
    (made / "task.toml").write_text((made / "task.toml").read_text().replace(sys.executable, "/gone/python"))
    with pytest.raises(BadInput, match=r"task\.toml: its interpreter /gone/python is not there; say where"):
        load_task(made)
    assert read_task(made).task.dependencies == ["pytest==1"]


def test_one_that_nothing_is_pinned_for_cannot_be_built_again(tmp_path: Path) -> None:
    made = written(tmp_path, replace(subject(), interpreter=Path(sys.executable)))
    (made / "task.toml").write_text((made / "task.toml").read_text().replace(sys.executable, "/gone/python"))
    with pytest.raises(BadInput, match="its interpreter /gone/python is not there; name one"):
        load_task(made, tmp_path)


def test_an_interpreter_that_is_gone_is_built_again_from_what_is_pinned(tmp_path: Path) -> None:
    pins = [f"{name}=={importlib.metadata.version(name)}" for name in ("iniconfig", "pluggy")]
    made = written(
        tmp_path,
        replace(subject(dependencies=pins, origin=Origin(name="add", version="2.5")), interpreter=Path(sys.executable)),
    )
    (made / "task.toml").write_text((made / "task.toml").read_text().replace(sys.executable, "/gone/python"))
    told: list[str] = []
    try:
        interpreter = load_task(made, tmp_path / "home", told.append).interpreter
    except MissingDependency as error:
        pytest.skip(f"no package index: {error}")
    assert interpreter is not None
    asked = "import importlib.metadata as m, pluggy; print(m.version('add'))"
    assert subprocess.check_output([interpreter, "-I", "-c", asked], text=True) == "2.5\n"
    assert load_task(made, tmp_path / "home", pytest.fail).interpreter == interpreter
    assert len(told) == 1


def test_what_cannot_be_built_again_is_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"CONFIG_FILE": "/dev/null", "NO_INDEX": "1", "FIND_LINKS": str(tmp_path)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    made = written(tmp_path, replace(subject(dependencies=["missing==1"]), interpreter=Path(sys.executable)))
    (made / "task.toml").write_text((made / "task.toml").read_text().replace(sys.executable, "/gone/python"))
    with pytest.raises(BadInput, match=r"cannot be built again: missing cannot be installed from a wheel") as caught:
        load_task(made, tmp_path / "home")
    assert "\n" not in str(caught.value)


def test_verdicts_depend_on_what_is_pinned_and_not_on_where_it_lies() -> None:
    pinned, other = subject(dependencies=["six==1"]), subject(dependencies=["six==2"])
    digests = [replace(pinned, interpreter=Path(path)).digest for path in ("/a/python", "/b/python")]
    assert digests[0] == digests[1] == pinned.digest != other.digest
    assert replace(subject(), interpreter=Path("/a/python")).digest != subject().digest


def test_a_directory_of_tasks_is_no_task_and_names_one(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "task.toml").write_text("")
    with pytest.raises(BadInput, match=re.escape(f"one of the tasks in it is {tmp_path / 'a'}")):
        load_task(tmp_path, tmp_path / "home")
