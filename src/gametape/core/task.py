"""A task as data: the instruction, the paths the agent may change, and the tests that decide."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gametape.core.base_model import Count, Fraction, StrictModel
from gametape.core.validation import Fault, raise_faults
from gametape.core.verdict import VerificationMode

Positive = Annotated[float, Field(gt=0)]


TaskTestGroup = Literal["unit", "integration", "behavioural"]


class TaskTests(StrictModel):
    """Test ids, each in one role. The agent never sees the `held_out` tests; they always run where there are any.

    Those of them that pass on the starting tree are also in `held_out_passing`: they must keep passing, and do not
    count as progress.

    `groups` names the integration and behavioural tests; all others are unit tests.
    """

    fail_to_pass: list[str]
    pass_to_pass: list[str]
    held_out: list[str] = Field(default_factory=list)
    held_out_passing: list[str] = Field(default_factory=list)
    groups: dict[TaskTestGroup, list[str]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_roles(self) -> Self:
        seen: dict[str, str] = {}
        for name in ("fail_to_pass", "pass_to_pass", "held_out"):
            for test in getattr(self, name):
                if seen.get(test) == name:
                    raise_faults([((name,), f"each test id once, but {test} is there twice")])
                if test in seen:
                    raise_faults([((name,), f"no test that is in {seen[test]}, but {test} is")])
                seen[test] = name
        if stray := [test for test in self.held_out_passing if seen.get(test) != "held_out"]:
            raise_faults([(("held_out_passing",), f"tests that are in held_out, but {stray[0]} is not")])
        for group, tests in self.groups.items():
            if unknown := [test for test in tests if test not in seen]:
                raise_faults([(("groups", group), f"tests of this manifest, but {unknown[0]} is not")])
        return self

    @property
    def visible(self) -> list[str]:
        """The tests the agent may see."""
        return [*self.fail_to_pass, *self.pass_to_pass]

    @property
    def every(self) -> list[str]:
        return [*self.visible, *self.held_out]

    def group_of(self, test: str) -> TaskTestGroup:
        return next((group for group, tests in self.groups.items() if test in tests), "unit")


class Difficulty(StrictModel):
    """How hard a task is: `prior` is estimated from its shape, `pass_rate` is measured over `samples`."""

    prior: Fraction
    components: dict[str, float] = Field(default_factory=dict)
    """The components of the prior."""
    pass_rate: Fraction | None = None
    samples: Count = 0


class Stage(StrictModel):
    """One step of a long task. The tests of earlier stages must keep passing."""

    name: str
    instruction: str
    tests: TaskTests


class TaskLimits(StrictModel):
    """Limits of an attempt and its verification; None leaves them to the caller."""

    agent_seconds: Positive | None = None
    verifier_seconds: Positive | None = None
    cpus: Positive | None = None
    memory_mb: Annotated[int, Field(gt=0)] | None = None
    disk_mb: Annotated[int, Field(gt=0)] | None = None


class ImportContract(StrictModel):
    """`importer`, a module or package, and all below it must not import anything at or below `forbidden`."""

    importer: str
    forbidden: list[str]


class Architecture(StrictModel):
    """Rules on the structure of the code, checked beside the tests."""

    contracts: list[ImportContract] = Field(default_factory=list)
    layers: list[str] = Field(default_factory=list)
    """Modules or packages, highest first: none imports one that comes before it."""
    forbidden_modules: list[str] = Field(default_factory=list)
    """Modules that no source file may import."""
    public_api: dict[str, list[str]] = Field(default_factory=dict)
    """The names that a module must offer, as `name`, `name(parameters)` or `Class.method(parameters)`."""


class SplitSurface(StrictModel):
    """What tests reach of code in another process: the modules they import, and the classes (`module:Class`) whose
    objects stay on the other side as handles. Everything else that comes back is plain data."""

    modules: list[str]
    classes: list[str] = Field(default_factory=list)


class Origin(StrictModel):
    """The distribution that a task is about. The task's interpreter has its name and version, but none of its code."""

    name: Annotated[str, Field(min_length=1)]
    version: Annotated[str, Field(min_length=1)]


class Task(StrictModel):
    """A loaded task directory. All paths are relative to the workspace.

    `mode` is how its tests may run. `replay`: each in the strongest way that it can. `split`: all of them apart from
    the code, through the surface in `split`. `shared`: all of them in one process with the code. A task in replay mode
    may name its surface; without one it is derived from the sources.

    `source_paths` (files or directories) are the only paths that are taken from an attempt; `test_paths` is where
    the pristine suite is laid over them; `import_roots` are the directories imports start from. `weights` replaces
    the default weight of the reward's layers it names.
    """

    schema_version: Literal["task-v1"] = "task-v1"
    name: str
    mode: VerificationMode
    instruction: str
    source_paths: list[str]
    test_paths: list[str] = Field(default_factory=lambda: ["tests"])
    import_roots: list[str] = Field(default_factory=lambda: ["."])
    dependencies: list[str] = Field(default_factory=list)
    """Pinned requirements of the sources and the tests, beside pytest."""
    origin: Origin | None = None
    tests: TaskTests
    split: SplitSurface | None = None
    architecture: Architecture | None = None
    difficulty: Difficulty | None = None
    stages: list[Stage] = Field(default_factory=list)
    limits: TaskLimits = TaskLimits()
    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        faults = [*self._faults()]
        if faults:
            raise_faults(faults)
        return self

    def _faults(self) -> Iterator[Fault]:
        for name in ("source_paths", "test_paths", "import_roots"):
            for index, path in enumerate(getattr(self, name)):
                if not path or path.startswith("/") or ".." in path.split("/"):
                    yield (name, index), "a path inside the workspace"
        if not self.source_paths:
            yield ("source_paths",), "at least one path that the agent may change"
        if self.mode == "split" and self.split is None:
            yield ("split",), "what the tests import, in split mode"
        if self.mode == "shared" and self.split is not None:
            yield ("split",), "nothing, in shared mode"
        manifest = set(self.tests.every)
        for index, stage in enumerate(self.stages):
            if stray := [test for test in stage.tests.every if test not in manifest]:
                yield ("stages", index, "tests"), f"tests of the task's own manifest, but {stray[0]} is not"
        if len({stage.name for stage in self.stages}) != len(self.stages):
            yield ("stages",), "a different name for each stage"
