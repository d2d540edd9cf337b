"""A task as data: what to build, where, and what decides whether it was built."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gametape.core.model import Closed, Count, Fraction
from gametape.core.problems import Fault, refuse
from gametape.core.verdict import Mode

Positive = Annotated[float, Field(gt=0)]


class TaskTests(Closed):
    """Test ids. `held_out` are the tests the agent never sees; they always run where there are any."""

    fail_to_pass: list[str]
    pass_to_pass: list[str]
    held_out: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _each_in_one_role(self) -> Self:
        for name in ("fail_to_pass", "pass_to_pass", "held_out"):
            ids = getattr(self, name)
            if len(set(ids)) != len(ids):
                refuse([((name,), "each test id once")])
        if set(self.fail_to_pass) & set(self.pass_to_pass):
            refuse([(("pass_to_pass",), "no test that is in fail_to_pass")])
        return self

    @property
    def visible(self) -> list[str]:
        """The tests the agent may see."""
        hidden = set(self.held_out)
        return [test for test in (*self.fail_to_pass, *self.pass_to_pass) if test not in hidden]


class Difficulty(Closed):
    """How hard a task looks (`prior`, from its shape) and proves to be (`pass_rate` over `samples`)."""

    prior: Fraction
    pass_rate: Fraction | None = None
    samples: Count = 0


class Stage(Closed):
    """One step of a long task. The tests of earlier stages must keep passing."""

    name: str
    instruction: str
    tests: TaskTests


class TaskLimits(Closed):
    """What an attempt and its verification may use; None leaves it to whoever runs them."""

    agent_seconds: Positive | None = None
    verifier_seconds: Positive | None = None
    cpus: Positive | None = None
    memory_mb: Annotated[int, Field(gt=0)] | None = None
    disk_mb: Annotated[int, Field(gt=0)] | None = None


class Task(Closed):
    """A loaded task directory.

    `source_paths` are the only paths, relative to the workspace, that are taken from an attempt. `weights`
    replaces the default weight of the reward's layers it names.
    """

    schema_version: Literal["task-v1"] = "task-v1"
    name: str
    mode: Mode
    instruction: str
    source_paths: list[str]
    tests: TaskTests
    difficulty: Difficulty | None = None
    stages: list[Stage] = Field(default_factory=list)
    limits: TaskLimits = TaskLimits()
    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _stays_inside(self) -> Self:
        faults = [*self._faults()]
        if faults:
            refuse(faults)
        return self

    def _faults(self) -> Iterator[Fault]:
        for index, path in enumerate(self.source_paths):
            if not path or path.startswith("/") or ".." in path.split("/"):
                yield ("source_paths", index), "a path inside the workspace"
        if len({stage.name for stage in self.stages}) != len(self.stages):
            yield ("stages",), "a different name for each stage"
