import asyncio
import importlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gametape.core.errors import BadInput
from gametape.core.task import Origin, TaskLimits, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree, read_tree
from gametape.tasks.export import read_exportable_tasks
from gametape.tasks.export_swebench import export_swebench, swebench_instance
from gametape.tasks.export_verifiers import export_verifiers
from gametape.tasks.loader import load_task
from gametape.tasks.writer import write_task

from .made import REFERENCE, START, SUITE, TASKS, TESTS, VISIBLE, staged_subject, subject, written


def applied(tree: SourceTree, patch: str, place: Path) -> SourceTree:
    tree.write_to(place)
    if patch:
        subprocess.run(["git", "apply", "-"], cwd=place, input=patch.encode(), check=True)
    return read_tree(place)


@pytest.mark.parametrize("task", TASKS, ids=lambda path: path.name)
def test_the_patches_of_an_instance_lead_where_they_say(task: Path, tmp_path: Path) -> None:
    (exported,) = read_exportable_tasks([task])
    told, made = swebench_instance(exported), exported.loaded_task
    solved = applied(made.start, told["gold_patch"], tmp_path / "solved")
    assert solved == exported.reference
    assert applied(solved, told["break_patch"], tmp_path / "broken") == made.start
    graded = applied(solved, told["test_patch"], tmp_path / "graded")
    assert graded.under(made.task.test_paths) == made.suite
    assert told["patch"] == told["gold_patch"]


def test_an_instance_holds_what_graders_of_this_style_expect(tmp_path: Path) -> None:
    pins = {"dependencies": ["attrs==24.2.0"], "origin": Origin(name="Add", version="1.5")}
    task = written(tmp_path, subject(**pins))
    out = export_swebench(read_exportable_tasks([task]), tmp_path / "out.jsonl")
    (line,) = out.read_text().splitlines()
    told = json.loads(line)
    assert list(told) == [
        *("instance_id", "repo", "version", "base_commit", "problem_statement", "hints_text"),
        *("FAIL_TO_PASS", "PASS_TO_PASS", "patch", "gold_patch", "break_patch", "test_patch", "environment"),
    ]
    assert (told["instance_id"], told["repo"], told["version"]) == ("made__add", "Add", "1.5")
    assert json.loads(told["FAIL_TO_PASS"]) == [*TESTS.fail_to_pass, *TESTS.held_out]
    assert json.loads(told["PASS_TO_PASS"]) == []
    assert told["environment"]["dependencies"] == ["attrs==24.2.0"]
    assert told["environment"]["image"] == "python:3.11-slim"
    assert told["environment"]["pytest_options"][:3] == ["-c", "/dev/null", "--rootdir=."]


def test_held_out_tests_that_pass_at_the_start_have_to_keep_passing(tmp_path: Path) -> None:
    tests = TaskTests(
        fail_to_pass=TESTS.fail_to_pass, pass_to_pass=[], held_out=TESTS.held_out, held_out_passing=TESTS.held_out
    )
    (exported,) = read_exportable_tasks([written(tmp_path, subject(tests=tests))])
    told = swebench_instance(exported)
    assert json.loads(told["FAIL_TO_PASS"]) == TESTS.fail_to_pass
    assert json.loads(told["PASS_TO_PASS"]) == TESTS.held_out


def test_stages_are_told_at_once(tmp_path: Path) -> None:
    (exported,) = read_exportable_tasks([written(tmp_path, staged_subject())])
    headings = re.findall(r"^#.*|^\w.*", exported.statement, re.MULTILINE)
    assert headings == [
        *("# Add", "Write `add`."),
        *("## Stage 01-small", "Small numbers.", "## Stage 02-large", "Large numbers."),
    ]


def test_a_task_without_a_solution_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no solution"):
        read_exportable_tasks([written(tmp_path, LoadedTask(subject().task, START, SUITE))])


def test_two_tasks_of_one_name_are_refused(tmp_path: Path) -> None:
    first = write_task(tmp_path / "first", subject(name="made/add one"))
    second = write_task(tmp_path / "second", subject(name="made/add-one"))
    with pytest.raises(BadInput, match=r"second: would be named made__add-one, as .*first is"):
        read_exportable_tasks([first, second])


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "precious"
    out.write_text("mine")
    with pytest.raises(BadInput, match="is there already"):
        export_swebench(read_exportable_tasks([written(tmp_path)]), out)
    assert out.read_text() == "mine"


@pytest.mark.parametrize("name", ["json", "verifiers", "7-tasks", "my tasks", "class", "größe"])
def test_a_directory_whose_name_cannot_be_a_packages_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="name of a Python package"):
        export_verifiers(read_exportable_tasks([written(tmp_path)]), tmp_path / name)
    assert not (tmp_path / name).exists()


STAND_IN = """
from typing import Any, Generic, TypeVar
from pydantic import BaseModel

T, C = TypeVar("T"), TypeVar("C")


class Limits(BaseModel, extra="forbid"):
    agent: float | None = None
    cpu: float | None = None
    memory: float | None = None
    disk: float | None = None


class TaskData(BaseModel, frozen=True, extra="forbid"):
    id: str
    name: str
    prompt: str
    image: str
    workdir: str
    timeout: Limits
    resources: Limits


class TasksetConfig(BaseModel):
    task: Any = None


class Task(Generic[T]):
    def __init__(self, data, config=None):
        self.data = data


class Taskset(Generic[T, C]):
    def __init__(self, config):
        self.config = config


def reward(weight):
    return lambda function: function


Runtime = Trace = object
"""
"""As much of the library's interface as a task set touches: it is no dependency of ours."""


class Container:
    """A runtime whose /app and /tmp lie below a directory, and which has no package index."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tmp").mkdir(parents=True)
        self.metrics: dict[str, float] = {}

    def moved(self, text: str) -> str:
        return re.sub(r"/(app|tmp)\b", rf"{self.root}/\1", text)

    async def run(self, words: list[str], _: dict[str, str]) -> Any:
        if "pip install" in words[-1]:
            return type("Done", (), {"exit_code": 0})
        done = subprocess.run([self.moved(word) for word in words], capture_output=True, text=True, check=False)
        return type("Done", (), {"exit_code": done.returncode, "stderr": done.stderr})

    async def write(self, path: str, data: bytes) -> None:
        Path(self.moved(path)).write_bytes(data)

    async def read(self, path: str, max_bytes: int) -> bytes:
        return Path(self.moved(path)).read_bytes()[:max_bytes]

    def record_metric(self, name: str, value: float) -> None:
        self.metrics[name] = value


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An exported package, imported beside a stand-in for the library."""
    task = written(tmp_path, subject(limits=TaskLimits(agent_seconds=60, memory_mb=512)))
    (task / "environment/workspace/__pycache__").mkdir()
    (task / "environment/workspace/__pycache__/add.pyc").write_bytes(b"")
    out = export_verifiers(read_exportable_tasks([task]), tmp_path / "made-tasks")
    library = tmp_path / "library/verifiers/v1"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text(STAND_IN)
    for name in ("verifiers", "verifiers.v1", "made_tasks", "made_tasks.taskset"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(out)
    monkeypatch.syspath_prepend(tmp_path / "library")
    monkeypatch.setenv("GAMETAPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return importlib.import_module("made_tasks")


def only_task(package: ModuleType) -> Any:
    (name,) = package.__all__
    (task,) = getattr(package, name)(sys.modules["verifiers.v1"].TasksetConfig()).load()
    return task


def test_a_task_set_brings_its_tasks(loaded: ModuleType) -> None:
    data = only_task(loaded).data
    assert (data.id, data.prompt, data.image) == ("made__add", "# Add\n\nWrite `add`.\n", "python:3.11-slim")
    assert (data.timeout.agent, data.resources.memory, data.resources.cpu) == (60, 0.5, None)
    assert load_task(Path(str(loaded.__file__)).parent / data.path) == subject(
        limits=TaskLimits(agent_seconds=60, memory_mb=512)
    )


def test_a_rollout_starts_from_the_workspace_and_is_judged_by_gametape(loaded: ModuleType, tmp_path: Path) -> None:
    task, box = only_task(loaded), Container(tmp_path / "box")
    asyncio.run(task.setup(box))
    assert read_tree(tmp_path / "box/app") == START
    assert asyncio.run(task.verified(box, box)) <= 0
    assert box.metrics == {"passed": 0.0}
    (tmp_path / "box/app/add.py").write_bytes(REFERENCE.files["add.py"])
    assert asyncio.run(task.verified(box, box)) > 0
    assert box.metrics == {"passed": 1.0}


@pytest.mark.usefixtures("loaded")
def test_an_archive_from_the_container_writes_nothing_outside(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        archive.addfile(link)
        for name in ("good.py", "link/outside", "../outside", "later.py"):
            member = tarfile.TarInfo(name)
            member.size = len(VISIBLE)
            archive.addfile(member, io.BytesIO(VISIBLE))
    place = tmp_path / "place"
    place.mkdir()
    sys.modules["made_tasks.taskset"].unpack(buffer.getvalue(), place)
    sys.modules["made_tasks.taskset"].unpack(b"no archive at all", place)
    assert set(read_tree(place)) == {"good.py", "link/outside"}
    assert not (tmp_path / "outside").exists()


def test_what_cannot_be_written_whole_is_not_written_at_all(tmp_path: Path) -> None:
    (exported,) = read_exportable_tasks([written(tmp_path)])
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file/made-tasks", tmp_path / "file/out.jsonl"):
        with pytest.raises(BadInput):
            (export_verifiers if out.name == "made-tasks" else export_swebench)([exported], out)
    assert {path.name for path in tmp_path.iterdir()} == {"task", "file"}
