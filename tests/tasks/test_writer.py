import importlib.metadata
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.core.task import Architecture, Difficulty, ImportContract, Origin, TaskLimits, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree, read_tree
from gametape.tasks.loader import load_task
from gametape.tasks.writer import write_task
from tests.patience import HANG

from .made import (
    HIDDEN,
    REFERENCE,
    START,
    SUITE,
    TASKS,
    TESTS,
    VISIBLE,
    split_subject,
    staged_subject,
    subject,
    written,
)


def everything() -> LoadedTask:
    """A task with every field set, and values that are awkward to write down."""
    odd = ['tests/test_add.py::TestA::test_b["q"-\\-é-1.5]', "tests/test_add.py::test_small"]
    return subject(
        name="made/every thing",
        instruction='Tabs\tand "quotes", \u2028 and emoji 🎈.\n\nNo line break at the end',
        test_paths=["tests", "conftest.py"],
        import_roots=[".", "src"],
        dependencies=["attrs==24.2.0"],
        origin=Origin(name="Every.Thing", version="1.0"),
        weights={"tests": 0.5, "tests.unit": 2.0},
        difficulty=Difficulty(prior=0.25, pass_rate=0.5, samples=8),
        tests=TaskTests(
            fail_to_pass=odd,
            pass_to_pass=[],
            held_out=TESTS.held_out,
            groups={"integration": [odd[0], TESTS.held_out[0]]},
        ),
        architecture=Architecture(
            contracts=[
                ImportContract(importer="a", forbidden=["b", "c.d"]),
                ImportContract(importer="e", forbidden=[]),
            ],
            layers=["a", "b"],
            forbidden_modules=["pickle"],
            public_api={"a.b": ["f(x, *, y=1)"]},
        ),
        limits=TaskLimits(agent_seconds=1.5, verifier_seconds=20, cpus=0.5, memory_mb=256, disk_mb=64),
    )


@pytest.mark.parametrize(
    "made", [subject(), split_subject(), staged_subject(), everything()], ids=lambda made: made.task.name
)
def test_what_was_written_is_loaded(made: LoadedTask, tmp_path: Path) -> None:
    assert load_task(written(tmp_path, made)) == made


@pytest.mark.parametrize("task", TASKS, ids=lambda path: path.name)
def test_our_own_tasks_survive_the_round_trip(task: Path, tmp_path: Path) -> None:
    loaded = load_task(task)
    assert load_task(write_task(tmp_path / "again", loaded)) == loaded


def test_executable_files_stay_executable(tmp_path: Path) -> None:
    start = SourceTree({**START.files, "run.sh": b"#!/bin/sh\n"}, frozenset({"run.sh"}))
    reference = SourceTree({**REFERENCE.files, "run.sh": b"#!/bin/sh\n"})
    made = LoadedTask(subject(source_paths=["add.py", "old.py", "run.sh"]).task, start, SUITE, reference)
    assert load_task(written(tmp_path, made)) == made


def test_a_directory_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "precious").write_text("mine")
    with pytest.raises(BadInput, match="not empty"):
        written(tmp_path)
    assert [path.name for path in (tmp_path / "task").iterdir()] == ["precious"]


def test_what_cannot_be_written_whole_is_not_written_at_all(tmp_path: Path) -> None:
    made = LoadedTask(subject().task, SourceTree({**START.files, "a": b"", "a/b": b""}), SUITE, REFERENCE)
    with pytest.raises(BadInput):
        write_task(tmp_path / "deep" / "task", made)
    assert list(tmp_path.iterdir()) == []


def test_a_reference_that_changes_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="changes nothing"):
        written(tmp_path, LoadedTask(subject().task, START, SUITE, START))
    assert list(tmp_path.iterdir()) == []


def in_place_of_a_container(task: Path, root: Path, script: str) -> None:
    """Run a script of a task with the directories that Harbor's container has, moved below `root`."""
    text = re.sub(r"/(app|tests|solution|logs)\b", rf"{root}/\1", (task / script).read_text())
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(["sh", "-c", text], check=False, env={"PATH": path}, capture_output=True, timeout=HANG)


@pytest.mark.parametrize(("solved", "reward"), [(False, "0\n"), (True, "1\n")])
def test_harbors_scripts_tell_a_solution_from_none(solved: bool, reward: str, tmp_path: Path) -> None:
    task, root = written(tmp_path), tmp_path / "container"
    read_tree(task / "environment/workspace").write_to(root / "app")
    read_tree(task / "tests").write_to(root / "tests")
    read_tree(task / "solution").write_to(root / "solution")
    if solved:
        in_place_of_a_container(task, root, "solution/solve.sh")
        assert read_tree(root / "app") == REFERENCE
    in_place_of_a_container(task, root, "tests/test.sh")
    assert (root / "logs/verifier/reward.txt").read_text() == reward


def test_a_step_runs_the_tests_of_all_steps_so_far(tmp_path: Path) -> None:
    task = written(tmp_path, staged_subject())
    assert (task / "steps/01-small/tests/ids.txt").read_text().split() == TESTS.fail_to_pass
    assert (task / "steps/02-large/tests/ids.txt").read_text().split() == TESTS.every


def test_the_image_has_what_the_task_needs(tmp_path: Path) -> None:
    dockerfile = (written(tmp_path, subject(dependencies=["attrs>=24"])) / "environment/Dockerfile").read_text()
    assert "FROM python:3.11-slim\n" in dockerfile
    assert "pip install --no-cache-dir pytest 'attrs>=24'\n" in dockerfile
    assert "COPY workspace /app\n" in dockerfile


def test_an_image_has_the_python_and_the_pins_of_the_environment(tmp_path: Path) -> None:
    own = subject(dependencies=["attrs==24.2.0", "pytest==9.0.0"], origin=Origin(name="it's-odd", version="1.0"))
    made = written(tmp_path, replace(own, interpreter=Path(sys.executable)))
    dockerfile = (made / "environment/Dockerfile").read_text()
    assert f"FROM python:{sys.version_info.major}.{sys.version_info.minor}-slim\n" in dockerfile
    assert "pip install --no-cache-dir attrs==24.2.0 pytest==9.0.0\n" in dockerfile
    command = next(line for line in dockerfile.splitlines() if line.startswith("RUN python -c ")).removeprefix("RUN ")
    place = tmp_path / "packages"
    place.mkdir()
    quoted = (
        command.replace("sysconfig.get_path(", "str(")
        .replace("purelib", str(place))
        .replace("python", sys.executable, 1)
    )
    subprocess.run(["/bin/sh", "-c", quoted], check=True)
    found = [*importlib.metadata.distributions(path=[str(place)])]
    assert [(one.metadata["Name"], one.version) for one in found] == [("it's-odd", "1.0")]


def test_an_interpreter_is_written_as_a_hint_and_is_no_part_of_the_task(tmp_path: Path) -> None:
    own = subject(dependencies=["attrs==24.2.0"])
    made = written(tmp_path, replace(own, interpreter=Path(sys.executable)))
    assert f'interpreter = "{Path(sys.executable).absolute()}"' in (made / "task.toml").read_text()
    assert load_task(made).task == own.task


def test_nothing_held_out_is_in_the_image(tmp_path: Path) -> None:
    environment = read_tree(written(tmp_path) / "environment")
    assert VISIBLE in environment.files.values()
    assert all(HIDDEN not in content for content in environment.files.values())


def test_harbors_grader_uses_the_settings_of_the_tests_as_they_were_given(tmp_path: Path) -> None:
    settings = b"[pytest]\nusefixtures = ready\naddopts = --no-such-option\n"
    asking = b"import os\n\n\ndef test_ready():\n    assert os.environ['READY'] == 'yes'\n"
    fixture = b"import pytest\n\n\n@pytest.fixture\ndef ready(monkeypatch):\n    monkeypatch.setenv('READY', 'yes')\n"
    tests = {"tests/conftest.py": fixture, "tests/test_add.py": VISIBLE + b"\n\n" + asking}
    start = SourceTree({**START.files, **tests, "pytest.ini": settings})
    reference = SourceTree({**REFERENCE.files, **tests, "pytest.ini": settings})
    ids = TaskTests(fail_to_pass=TESTS.fail_to_pass, pass_to_pass=["tests/test_add.py::test_ready"])
    task = written(tmp_path, LoadedTask(subject(tests=ids).task, start, SourceTree(tests), reference))
    assert read_tree(task / "tests/config") == SourceTree({"pytest.ini": settings})

    root = tmp_path / "container"
    reference.write_to(root / "app")
    read_tree(task / "tests").write_to(root / "tests")
    (root / "app/pytest.ini").write_text("[pytest]\nusefixtures =\n")
    in_place_of_a_container(task, root, "tests/test.sh")
    assert (root / "logs/verifier/reward.txt").read_text() == "1\n"


def test_the_reference_can_be_read_and_applied_as_a_patch(tmp_path: Path) -> None:
    task, place = written(tmp_path), tmp_path / "place"
    START.write_to(place)
    patch = (task / "solution/reference.patch").read_bytes()
    assert b"-    raise NotImplementedError\n+    return a + b\n" in patch
    subprocess.run(["git", "apply", "-"], cwd=place, input=patch, check=True)
    assert read_tree(place) == REFERENCE


def test_a_history_is_not_written_because_it_could_not_be_loaded(tmp_path: Path) -> None:
    whole = subject()
    start = SourceTree({**whole.start.files, "tests/data/.git": b"gitdir: elsewhere"})
    with pytest.raises(BadInput, match=r"tests/data/\.git"):
        write_task(tmp_path / "task", replace(whole, start=start))
    assert not (tmp_path / "task").exists()
