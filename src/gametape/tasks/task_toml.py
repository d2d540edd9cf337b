"""task.toml as data: a few fields of Harbor's tables, and the closed table `[metadata.gametape]`."""

import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field, ValidationError

from gametape.core.base_model import ExtensibleModel, StrictModel
from gametape.core.task import Architecture, Difficulty, Origin, SplitSurface, Task, TaskTests
from gametape.core.validation import Fault, Problem, format_location, problems_from, raise_faults
from gametape.core.verdict import VerificationMode

SCHEMA_VERSION = "1.4"
"""The version of Harbor's format that is written. Any version is read: the fields needed here never changed."""

GAMETAPE_TABLE_PATH = ("metadata", "gametape")
STAGE_NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]*"

Seconds = Annotated[float, Field(gt=0)]
Megabytes = Annotated[int, Field(gt=0)]


class GametapeTable(StrictModel):
    """`[metadata.gametape]`: what the verifier needs. `gametape.core.task.Task` documents the fields."""

    mode: VerificationMode
    source_paths: list[str]
    test_paths: list[str] = Field(default_factory=lambda: ["tests"])
    import_roots: list[str] = Field(default_factory=lambda: ["."])
    dependencies: list[str] = Field(default_factory=list)
    interpreter: str | None = None
    """A hint: where the dependencies are installed on the machine that wrote this file. Not part of the task itself."""
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
    """The parsed file, or every problem in it."""
    try:
        parsed = TaskToml.model_validate(document)
        if faults := [*_contradictions(parsed)]:
            raise_faults(faults)
    except ValidationError as error:
        return [_in_toml(problem) for problem in problems_from(error, document)]
    return parsed


def _in_toml(problem: Problem) -> Problem:
    """Rename a dictionary, as pydantic calls it, to a table, as TOML does."""
    return Problem(problem.path, re.sub(r"a valid dictionary( or instance of \w+)?", "a table", problem.expected))


def _contradictions(task_toml: TaskToml) -> Iterator[Fault]:
    tests, stages = task_toml.gametape_table.tests, task_toml.gametape_table.stages
    if not tests.fail_to_pass and task_toml.gametape_table.architecture is None:
        yield (
            (*GAMETAPE_TABLE_PATH, "tests", "fail_to_pass"),
            "at least one test (only a task with an architecture may have none)",
        )
    for index, name in enumerate(task_toml.stage_names):
        if not re.fullmatch(STAGE_NAME_PATTERN, name):
            yield ("steps", index, "name"), "a plain name for a directory, such as 01-parse"
        if name in task_toml.stage_names[:index]:
            yield ("steps", index, "name"), f"a name of its own, but {name} is there twice"
        if name not in stages:
            yield (*GAMETAPE_TABLE_PATH, "stages", *([name] if stages else [])), f"the tests of step {name}"
    for name, stage in stages.items():
        if name not in task_toml.stage_names:
            yield (*GAMETAPE_TABLE_PATH, "stages", name), "a table for a step, but no [[steps]] has this name"
        if visible := [test for test in stage.visible if test in tests.held_out]:
            yield (*GAMETAPE_TABLE_PATH, "stages", name), f"held-out tests under held_out, but {visible[0]} is shown"
        if unknown := [test for test in stage.held_out if test not in tests.held_out]:
            yield (
                (*GAMETAPE_TABLE_PATH, "stages", name, "held_out"),
                f"held-out tests of the task, but {unknown[0]} is not",
            )


def to_task(task_toml: TaskToml, instruction: str, stage_instructions: dict[str, str]) -> Task | list[Problem]:
    """The task that a task.toml and its instructions describe, or every problem in it."""
    table = task_toml.gametape_table
    stages = [
        {"name": name, "instruction": stage_instructions[name], "tests": table.stages[name]}
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
        **{name: getattr(table, name) for name in GametapeTable.model_fields if name not in ("stages", "interpreter")},
    }
    try:
        return Task.model_validate(document)
    except ValidationError as error:
        return [_in_file(problem, task_toml.stage_names) for problem in problems_from(error, document)]


def _in_file(problem: Problem, stages: list[str]) -> Problem:
    """Translate a path in `Task` to a path in task.toml, where stages are tables under their names."""
    path = problem.path
    for index, name in enumerate(stages):
        path = path.replace(f"stages[{index}].tests", format_location(["stages", name]))
    return Problem(f"{format_location(GAMETAPE_TABLE_PATH)}.{path}", problem.expected)


def to_toml_document(
    task: Task, description: str, keywords: list[str], interpreter: str | None = None
) -> dict[str, Any]:
    """The task.toml of a task. `parse_task_toml` and `to_task` read it back as the same task."""
    table: dict[str, Any] = {
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
        "metadata": {"gametape": {key: value for key, value in table.items() if value or key == "mode"}},
        "verifier": {"timeout_sec": limits.verifier_seconds},
        "agent": {"timeout_sec": limits.agent_seconds},
        "environment": {"cpus": _whole(limits.cpus), "memory_mb": limits.memory_mb, "storage_mb": limits.disk_mb},
    }
    if task.stages:
        document["multi_step_reward_strategy"] = "final"
        document["steps"] = [{"name": stage.name} for stage in task.stages]
    return _without_none(document)


def _without_none(table: dict[str, Any]) -> dict[str, Any]:
    """The same without keys that are None, which TOML lacks, and without tables that have no other keys."""
    inner = {key: _without_none(value) if isinstance(value, dict) else value for key, value in table.items()}
    return {key: value for key, value in inner.items() if value is not None and value != {}}


def _whole(number: float | None) -> float | None:
    """An integer where the number is whole, as Harbor writes processor counts."""
    return int(number) if number is not None and number.is_integer() else number


def _dumped(tests: TaskTests) -> dict[str, Any]:
    return tests.model_dump(exclude={name for name in ("groups", "held_out_passing") if not getattr(tests, name)})
