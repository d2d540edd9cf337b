"""One kata: what is asked for, the answer, and the inputs that it is tried on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from gametape.core.task import Difficulty, SplitSurface, Task, TaskLimits, TaskTests
from gametape.verify.subject import Subject
from gametape.verify.tree import Tree

PREFIX = "katas/"
"""Every kata's name as a task begins with this."""
SHOWN, HIDDEN = 4, 6
_TRIES = 200

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Form:
    """A kata before its inputs are drawn. `expression` is the answer, over the parameters. `edges` are inputs at which
    a careless answer differs; `inputs` draws ordinary ones."""

    function: str
    parameters: tuple[str, ...]
    does: str
    expression: str
    inputs: Callable[[Random], Arguments]
    edges: Sequence[Arguments] = ()


@dataclass(frozen=True)
class Kata:
    family: str
    form: Form
    shown: tuple[Arguments, ...]
    hidden: tuple[Arguments, ...]

    @property
    def signature(self) -> str:
        return f"{self.form.function}({', '.join(self.form.parameters)})"

    @property
    def instruction(self) -> str:
        example = self.shown[0]
        return (
            f"Write a Python function `{self.signature}` that {self.form.does}.\n"
            f"For example, `{self.call(example)}` is `{self.answer(example)!r}`.\n"
        )

    @property
    def path(self) -> str:
        return f"{self.form.function}.py"

    @property
    def source(self) -> str:
        return f"def {self.signature}:\n    return {self.form.expression}\n"

    def call(self, arguments: Arguments) -> str:
        return f"{self.form.function}({', '.join(map(repr, arguments))})"

    def answer(self, arguments: Arguments) -> Any:
        return answer_of(self.form, arguments)

    def subject(self, number: str) -> Subject:
        """As a task. `number` tells it from others of the same form."""
        start = f"def {self.signature}:\n    raise NotImplementedError\n"
        shown, hidden = f"tests/test_{self.form.function}.py", f"tests/test_{self.form.function}_held_out.py"
        suite = Tree({shown: self._tests(self.shown), hidden: self._tests(self.hidden, len(self.shown))})
        visible = suite.only({shown})
        task = Task(
            name=f"{PREFIX}{self.family}-{number}",
            mode="split",
            instruction=self.instruction,
            source_paths=[self.path],
            tests=TaskTests(
                fail_to_pass=_ids(shown, len(self.shown)),
                pass_to_pass=[],
                held_out=_ids(hidden, len(self.hidden), len(self.shown)),
            ),
            split=SplitSurface(modules=[self.form.function]),
            difficulty=Difficulty(prior=0.02),
            limits=TaskLimits(verifier_seconds=60.0, agent_seconds=300.0, cpus=1, memory_mb=1024, disk_mb=256),
        )
        return Subject(
            task=task,
            start=visible.over(Tree({self.path: start.encode()})),
            suite=suite,
            reference=visible.over(Tree({self.path: self.source.encode()})),
        )

    def _tests(self, tried: Sequence[Arguments], before: int = 0) -> bytes:
        name = self.form.function
        lines = [f"from {name} import {name}\n"]
        for number, arguments in enumerate(tried, start=before + 1):
            expected = self.answer(arguments)
            told = f"is {expected!r}" if isinstance(expected, bool) else f"== {expected!r}"
            lines.append(f"\n\ndef test_{number}():\n    assert {self.call(arguments)} {told}\n")
        return "".join(lines).encode()


def drawn(family: str, form: Form, rng: Random) -> Kata:
    """Give a form its inputs: no two the same, and in each half some that tell the answer from a constant and from
    handing the first argument back. The first one shown is the example: its answer is not empty if one shown is not."""
    for _ in range(_TRIES):
        edges = rng.sample(list(form.edges), len(form.edges))
        inputs: dict[str, Arguments] = {repr(arguments): arguments for arguments in edges}
        for _ in range(_TRIES):
            if len(inputs) >= SHOWN + HIDDEN:
                break
            arguments = form.inputs(rng)
            inputs.setdefault(repr(arguments), arguments)
        tried = [*inputs.values()][: SHOWN + HIDDEN]
        rng.shuffle(tried)
        shown, hidden = sorted(tried[:SHOWN], key=lambda one: not answer_of(form, one)), tried[SHOWN:]
        if _telling(form, shown) and _telling(form, hidden):
            return Kata(family, form, tuple(shown), tuple(hidden))
    raise ValueError(f"{form.function}: no inputs that tell its answer from simpler ones")


def answer_of(form: Form, arguments: Arguments) -> Any:
    """The reference's answer: an expression of ours, evaluated here."""
    return eval(form.expression, dict(zip(form.parameters, arguments, strict=True)))


def _telling(form: Form, tried: Sequence[Arguments]) -> bool:
    answers = [answer_of(form, arguments) for arguments in tried]
    constant = all(answer == answers[0] for answer in answers)
    same = all(answer == arguments[0] for answer, arguments in zip(answers, tried, strict=True))
    return len(tried) > 1 and not constant and not same


def _ids(file: str, count: int, before: int = 0) -> list[str]:
    return [f"{file}::test_{number}" for number in range(before + 1, before + count + 1)]
