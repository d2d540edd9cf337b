"""One kata: its template (instruction and reference answer), its test inputs, and the task made of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from gametape.core.task import Difficulty, Task, TaskLimits, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree

TASK_NAME_PREFIX = "katas/"
"""The task name of every kata begins with this."""
VISIBLE_INPUTS, HELD_OUT_INPUTS = 4, 6
_TRIES = 200

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class KataTemplate:
    """A kata before its inputs are drawn. `expression` is the reference answer, over the parameters. `edge_inputs` are
    those at which a careless answer differs; `draw_input` draws ordinary ones."""

    function: str
    parameters: tuple[str, ...]
    description: str
    expression: str
    draw_input: Callable[[Random], Arguments]
    edge_inputs: Sequence[Arguments] = ()


@dataclass(frozen=True)
class Kata:
    family: str
    template: KataTemplate
    visible_inputs: tuple[Arguments, ...]
    held_out_inputs: tuple[Arguments, ...]

    @property
    def signature(self) -> str:
        return f"{self.template.function}({', '.join(self.template.parameters)})"

    @property
    def instruction(self) -> str:
        example = self.visible_inputs[0]
        return (
            f"Write a Python function `{self.signature}` that {self.template.description}.\n"
            f"For example, `{self.call(example)}` is `{self.reference_answer(example)!r}`.\n"
        )

    @property
    def path(self) -> str:
        return f"{self.template.function}.py"

    @property
    def source(self) -> str:
        return f"def {self.signature}:\n    return {self.template.expression}\n"

    def call(self, arguments: Arguments) -> str:
        return f"{self.template.function}({', '.join(map(repr, arguments))})"

    def reference_answer(self, arguments: Arguments) -> Any:
        return reference_answer(self.template, arguments)

    def to_loaded_task(self, number: str) -> LoadedTask:
        """The kata as a task. `number` makes its name unique."""
        start = f"def {self.signature}:\n    raise NotImplementedError\n"
        visible_path, held_out_path = (
            f"tests/test_{self.template.function}.py",
            f"tests/test_{self.template.function}_held_out.py",
        )
        suite = SourceTree(
            {
                visible_path: self._tests(self.visible_inputs),
                held_out_path: self._tests(self.held_out_inputs, len(self.visible_inputs)),
            }
        )
        visible_suite = suite.only({visible_path})
        task = Task(
            name=f"{TASK_NAME_PREFIX}{self.family}-{number}",
            mode="replay",
            instruction=self.instruction,
            source_paths=[self.path],
            tests=TaskTests(
                fail_to_pass=_ids(visible_path, len(self.visible_inputs)),
                pass_to_pass=[],
                held_out=_ids(held_out_path, len(self.held_out_inputs), len(self.visible_inputs)),
            ),
            difficulty=Difficulty(prior=0.02),
            limits=TaskLimits(verifier_seconds=60.0, agent_seconds=300.0, cpus=1, memory_mb=1024, disk_mb=256),
        )
        return LoadedTask(
            task=task,
            start=visible_suite.overlaid_on(SourceTree({self.path: start.encode()})),
            suite=suite,
            reference=visible_suite.overlaid_on(SourceTree({self.path: self.source.encode()})),
        )

    def _tests(self, inputs: Sequence[Arguments], offset: int = 0) -> bytes:
        name = self.template.function
        lines = [f"from {name} import {name}\n"]
        for number, arguments in enumerate(inputs, start=offset + 1):
            expected = self.reference_answer(arguments)
            comparison = f"is {expected!r}" if isinstance(expected, bool) else f"== {expected!r}"
            lines.append(f"\n\ndef test_{number}():\n    assert {self.call(arguments)} {comparison}\n")
        return "".join(lines).encode()


def draw_kata(family: str, template: KataTemplate, rng: Random) -> Kata:
    """Draw a template's inputs, all different. Both the visible and the held-out half contain inputs that a constant
    fails, and inputs that returning the first argument fails. The first visible input is the instruction's example:
    its answer is truthy if any visible one is."""
    for _ in range(_TRIES):
        edges = rng.sample(list(template.edge_inputs), len(template.edge_inputs))
        inputs: dict[str, Arguments] = {repr(arguments): arguments for arguments in edges}
        for _ in range(_TRIES):
            if len(inputs) >= VISIBLE_INPUTS + HELD_OUT_INPUTS:
                break
            arguments = template.draw_input(rng)
            inputs.setdefault(repr(arguments), arguments)
        drawn = [*inputs.values()][: VISIBLE_INPUTS + HELD_OUT_INPUTS]
        rng.shuffle(drawn)
        visible, held_out = (
            sorted(drawn[:VISIBLE_INPUTS], key=lambda arguments: not reference_answer(template, arguments)),
            drawn[VISIBLE_INPUTS:],
        )
        if _is_discriminating(template, visible) and _is_discriminating(template, held_out):
            return Kata(family, template, tuple(visible), tuple(held_out))
    raise ValueError(f"{template.function}: no inputs that tell its answer from simpler ones")


def reference_answer(template: KataTemplate, arguments: Arguments) -> Any:
    """The value of the template's expression, which is ours and safe to evaluate."""
    return eval(template.expression, dict(zip(template.parameters, arguments, strict=True)))


def _is_discriminating(template: KataTemplate, inputs: Sequence[Arguments]) -> bool:
    answers = [reference_answer(template, arguments) for arguments in inputs]
    constant = all(answer == answers[0] for answer in answers)
    identity = all(answer == arguments[0] for answer, arguments in zip(answers, inputs, strict=True))
    return len(inputs) > 1 and not constant and not identity


def _ids(file: str, count: int, offset: int = 0) -> list[str]:
    return [f"{file}::test_{number}" for number in range(offset + 1, offset + count + 1)]
