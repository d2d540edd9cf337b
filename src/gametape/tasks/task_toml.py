"""task.toml as data: Harbor's tables, of which we read a few fields, and our own, of which we know every one."""

import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field, ValidationError

from gametape.core.base_model import ExtensibleModel, StrictModel
from gametape.core.task import Architecture, Difficulty, Origin, SplitSurface, Task, TaskTests
from gametape.core.validation import Fault, Problem, format_location, problems_from, raise_faults
from gametape.core.verdict import VerificationMode

SCHEMA_VERSION = "1.4"
"""Of Harbor's format, as it is written here. Any version is read: the fields we need never changed."""

GAMETAPE_TABLE_PATH = ("metadata", "gametape")
STAGE_NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]*"

Seconds = Annotated[float, Field(gt=0)]
Megabytes = Annotated[int, Field(gt=0)]


class GametapeTable(StrictModel):
    """`[metadata.gametape]`: what the verifier needs to know. See `gametape.core.task.Task` for the meaning."""

    mode: VerificationMode
    source_paths: list[str]
    test_paths: list[str] = Field(default_factory=lambda: ["tests"])
    import_roots: list[str] = Field(default_factory=lambda: ["."])
    dependencies: list[str] = Field(default_factory=list)
    interpreter: str | None = None
    """A hint: where the dependencies are installed on the machine that wrote this. No part of the task itself."""
    origin: Origin | None = None
    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    difficulty: Difficulty | None = None
    tests: TaskTests
    split: SplitSurface | None = None
    architecture: Architecture | None = None
    stages: dict[str, TaskTests] = Field(default_factory=dict)


class _Metadata(ExtensibleModel):
    gametape: GametapeTable


class _Task(ExtensibleModel):
    name: Annotated[str, Field(min_length=1)]


class _Timed(ExtensibleModel):
    timeout_sec: Seconds | None = None


class _Environment(ExtensibleModel):
    cpus: Seconds | None = None
    memory_mb: Megabytes | None = None
    storage_mb: Megabytes | None = None


class _Step(ExtensibleModel):
    name: str


class TaskToml(ExtensibleModel):
    """A whole task.toml."""

    task: _Task
    metadata: _Metadata
    verifier: _Timed = Field(default_factory=_Timed)
    agent: _Timed = Field(default_factory=_Timed)
    environment: _Environment = Field(default_factory=_Environment)
    steps: list[_Step] = Field(default_factory=list)

    @property
    def gametape_table(self) -> GametapeTable:
        return self.metadata.gametape

    @property
    def stage_names(self) -> list[str]:
        return [step.name for step in self.steps]


def parse_task_toml(document: dict[str, Any]) -> TaskToml | list[Problem]:
    """The file's content, or all that is wrong with it."""
    try:
        read = TaskToml.model_validate(document)
        if faults := [*_contradictions(read)]:
            raise_faults(faults)
    except ValidationError as error:
        return [_in_toml(problem) for problem in problems_from(error, document)]
    return read


def _in_toml(problem: Problem) -> Problem:
    """What Python calls a dictionary is a table here."""
    return Problem(problem.path, re.sub(r"a valid dictionary( or instance of \w+)?", "a table", problem.expected))


def _contradictions(read: TaskToml) -> Iterator[Fault]:
    tests, stages = read.gametape_table.tests, read.gametape_table.stages
    if not tests.fail_to_pass and read.gametape_table.architecture is None:
        yield (
            (*GAMETAPE_TABLE_PATH, "tests", "fail_to_pass"),
            "at least one test (only a task with an architecture may have none)",
        )
    for index, name in enumerate(read.stage_names):
        if not re.fullmatch(STAGE_NAME_PATTERN, name):
            yield ("steps", index, "name"), "a plain name for a directory, such as 01-parse"
        if name in read.stage_names[:index]:
            yield ("steps", index, "name"), f"a name of its own, but {name} is there twice"
        if name not in stages:
            yield (*GAMETAPE_TABLE_PATH, "stages", *([name] if stages else [])), f"the tests of step {name}"
    for name, stage in stages.items():
        if name not in read.stage_names:
            yield (*GAMETAPE_TABLE_PATH, "stages", name), "a table for a step, but no [[steps]] has this name"
        if shown := [test for test in stage.visible if test in tests.held_out]:
            yield (*GAMETAPE_TABLE_PATH, "stages", name), f"held-out tests under held_out, but {shown[0]} is shown"
        if hidden := [test for test in stage.held_out if test not in tests.held_out]:
            yield (
                (*GAMETAPE_TABLE_PATH, "stages", name, "held_out"),
                f"held-out tests of the task, but {hidden[0]} is not",
            )


def to_task(task_toml: TaskToml, instruction: str, stage_instructions: dict[str, str]) -> Task | list[Problem]:
    """The task that a task.toml and its instructions describe."""
    ours = task_toml.gametape_table
    stages = [
        {"name": name, "instruction": stage_instructions[name], "tests": ours.stages[name]}
        for name in task_toml.stage_names
    ]
    document = {
        "name": task_toml.task.name,
        "instruction": instruction,
        "stages": stages,
        "limits": {
            "agent_seconds": task_toml.agent.timeout_sec,
            "verifier_seconds": task_toml.verifier.timeout_sec,
            "cpus": task_toml.environment.cpus,
            "memory_mb": task_toml.environment.memory_mb,
            "disk_mb": task_toml.environment.storage_mb,
        },
        **{name: getattr(ours, name) for name in GametapeTable.model_fields if name not in ("stages", "interpreter")},
    }
    try:
        return Task.model_validate(document)
    except ValidationError as error:
        return [_in_file(problem, task_toml.stage_names) for problem in problems_from(error, document)]


def _in_file(problem: Problem, stages: list[str]) -> Problem:
    """A place in a task, as a place in task.toml: there the stages are tables by their names."""
    path = problem.path
    for index, name in enumerate(stages):
        path = path.replace(f"stages[{index}].tests", format_location(["stages", name]))
    return Problem(f"{format_location(GAMETAPE_TABLE_PATH)}.{path}", problem.expected)


def to_toml_document(
    task: Task, description: str, keywords: list[str], interpreter: str | None = None
) -> dict[str, Any]:
    """The task.toml of a task: what `parse` and `to_task` read back as the same task."""
    ours: dict[str, Any] = {
        **task.model_dump(include={"mode", "source_paths", "test_paths", "import_roots", "dependencies"}),
        "interpreter": interpreter,
        **task.model_dump(include={"origin", "weights", "difficulty", "split", "architecture"}, exclude_defaults=True),
        "tests": _dumped(task.tests),
        "stages": {stage.name: _dumped(stage.tests) for stage in task.stages},
    }
    limits = task.limits
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "task": {"name": task.name, "description": description, "keywords": keywords},
        "metadata": {"gametape": {key: value for key, value in ours.items() if value or key == "mode"}},
        "verifier": {"timeout_sec": limits.verifier_seconds},
        "agent": {"timeout_sec": limits.agent_seconds},
        "environment": {"cpus": _whole(limits.cpus), "memory_mb": limits.memory_mb, "storage_mb": limits.disk_mb},
    }
    if task.stages:
        document["multi_step_reward_strategy"] = "final"
        document["steps"] = [{"name": stage.name} for stage in task.stages]
    return document


def _whole(number: float | None) -> float | None:
    """Harbor counts processors in whole numbers where it can."""
    return int(number) if number is not None and number.is_integer() else number


def _dumped(tests: TaskTests) -> dict[str, Any]:
    return tests.model_dump(exclude={name for name in ("groups", "held_out_passing") if not getattr(tests, name)})
