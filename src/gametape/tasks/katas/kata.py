"""One kata: what is asked for, the answer, and the inputs that it is tried on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from gametape.core.task import Difficulty, SplitSurface, Task, TaskLimits, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree

TASK_NAME_PREFIX = "katas/"
"""Every kata's name as a task begins with this."""
VISIBLE_INPUTS, HELD_OUT_INPUTS = 4, 6
_TRIES = 200

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class KataTemplate:
    """A kata before its inputs are drawn. `expression` is the answer, over the parameters. `edges` are inputs at which
    a careless answer differs; `inputs` draws ordinary ones."""

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
        """As a task. `number` tells it from others of the same form."""
        start = f"def {self.signature}:\n    raise NotImplementedError\n"
        shown, hidden = f"tests/test_{self.template.function}.py", f"tests/test_{self.template.function}_held_out.py"
        suite = SourceTree(
            {
                shown: self._tests(self.visible_inputs),
                hidden: self._tests(self.held_out_inputs, len(self.visible_inputs)),
            }
        )
        visible = suite.only({shown})
        task = Task(
            name=f"{TASK_NAME_PREFIX}{self.family}-{number}",
            mode="split",
            instruction=self.instruction,
            source_paths=[self.path],
            tests=TaskTests(
                fail_to_pass=_ids(shown, len(self.visible_inputs)),
                pass_to_pass=[],
                held_out=_ids(hidden, len(self.held_out_inputs), len(self.visible_inputs)),
            ),
            split=SplitSurface(modules=[self.template.function]),
            difficulty=Difficulty(prior=0.02),
            limits=TaskLimits(verifier_seconds=60.0, agent_seconds=300.0, cpus=1, memory_mb=1024, disk_mb=256),
        )
        return LoadedTask(
            task=task,
            start=visible.overlaid_on(SourceTree({self.path: start.encode()})),
            suite=suite,
            reference=visible.overlaid_on(SourceTree({self.path: self.source.encode()})),
        )

    def _tests(self, tried: Sequence[Arguments], before: int = 0) -> bytes:
        name = self.template.function
        lines = [f"from {name} import {name}\n"]
        for number, arguments in enumerate(tried, start=before + 1):
            expected = self.reference_answer(arguments)
            told = f"is {expected!r}" if isinstance(expected, bool) else f"== {expected!r}"
            lines.append(f"\n\ndef test_{number}():\n    assert {self.call(arguments)} {told}\n")
        return "".join(lines).encode()


def draw_kata(family: str, template: KataTemplate, rng: Random) -> Kata:
    """Give a form its inputs: no two the same, and in each half some that tell the answer from a constant and from
    handing the first argument back. The first one shown is the example: its answer is not empty if one shown is not."""
    for _ in range(_TRIES):
        edges = rng.sample(list(template.edge_inputs), len(template.edge_inputs))
        inputs: dict[str, Arguments] = {repr(arguments): arguments for arguments in edges}
        for _ in range(_TRIES):
            if len(inputs) >= VISIBLE_INPUTS + HELD_OUT_INPUTS:
                break
            arguments = template.draw_input(rng)
            inputs.setdefault(repr(arguments), arguments)
        tried = [*inputs.values()][: VISIBLE_INPUTS + HELD_OUT_INPUTS]
        rng.shuffle(tried)
        shown, hidden = (
            sorted(tried[:VISIBLE_INPUTS], key=lambda one: not reference_answer(template, one)),
            tried[VISIBLE_INPUTS:],
        )
        if _telling(template, shown) and _telling(template, hidden):
            return Kata(family, template, tuple(shown), tuple(hidden))
    raise ValueError(f"{template.function}: no inputs that tell its answer from simpler ones")


def reference_answer(template: KataTemplate, arguments: Arguments) -> Any:
    """The reference's answer: an expression of ours, evaluated here."""
    return eval(template.expression, dict(zip(template.parameters, arguments, strict=True)))


def _telling(form: KataTemplate, tried: Sequence[Arguments]) -> bool:
    answers = [reference_answer(form, arguments) for arguments in tried]
    constant = all(answer == answers[0] for answer in answers)
    same = all(answer == arguments[0] for answer, arguments in zip(answers, tried, strict=True))
    return len(tried) > 1 and not constant and not same


def _ids(file: str, count: int, before: int = 0) -> list[str]:
    return [f"{file}::test_{number}" for number in range(before + 1, before + count + 1)]
