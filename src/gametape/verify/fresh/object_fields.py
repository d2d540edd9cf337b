"""Objects that a test compares, looked at field by field.

`Vector(1, 2) + Vector(3, 4) == Vector(4, 6)` asks the code whether its own answer is right, and with nearly every other
vector in that place the answer is False. Where the starting tree gives a class public fields, they tell what the
answer is, and no comparison that the code makes has a part in it.
"""

import ast
from collections.abc import Iterator, Sequence

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.syntax.source import parse_or_none
from gametape.verify.fresh.conversation import PlayedProgram
from gametape.verify.fresh.corpus import is_plain
from gametape.verify.fresh.program import OBJECT, ObjectReference, Program, ProgramStep, parts_of
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay.recording import reference_sources

_MOST_FIELDS = 8


def given_fields(loaded_task: LoadedTask) -> tuple[str, ...]:
    """The public fields that classes of the starting tree and of the reference have alike."""
    start = _fields(loaded_task.start.under(loaded_task.task.source_paths))
    reference = _fields(reference_sources(loaded_task))
    return tuple(name for name in start if name in reference)[:_MOST_FIELDS]


def with_questions(program: Program, fields: Sequence[str]) -> Program | None:
    """The program that asks the objects that it compares for these fields at its end; None where there are none."""
    compared = _comparisons(program)
    if not compared or any(set(compared) & step.needs for step in program.steps):
        return None
    questions = [
        _question(program.steps[index], part, name)
        for index in compared
        for part in _objects(program.steps[index])
        for name in fields
    ]
    return Program((*program.steps, *dict.fromkeys(questions)), program.callbacks) if questions else None


def without_comparisons(
    program: Program, asked: Program, answers: PlayedProgram, start: PlayedProgram
) -> Program | None:
    """The program with questions in place of its comparisons. `asked` is the same one `with_questions`; those of them
    are taken that the reference answers with plain data and the starting tree otherwise."""
    questions = [
        step
        for step, ours, theirs in zip(asked.steps, answers.answers, start.answers, strict=True)
        if not step.recorded and ours[0] == words.RETURN and is_plain(ours[2]) and ours[0:3:2] != theirs[0:3:2]
    ]
    if not questions:
        return None
    steps, compared = list(program.steps), _comparisons(program)
    for number, index in enumerate(compared):
        steps[index] = questions[number % len(questions)]
    return Program((*steps, *questions[len(compared) :]), program.callbacks)


def _comparisons(program: Program) -> list[int]:
    return [index for index, step in enumerate(program.steps) if step.is_comparison]


def _objects(step: ProgramStep) -> list[ObjectReference]:
    """The objects that a comparison is about."""
    return [
        part for _, part in parts_of(step.fields) if isinstance(part, ObjectReference) and part.path[-1:] == (OBJECT,)
    ]


def _question(comparison: ProgramStep, part: ObjectReference, name: str) -> ProgramStep:
    return ProgramStep(words.GET, (part, name), f"{comparison.function.rpartition('.')[0]}.{name}", ())


def _fields(tree: SourceTree) -> dict[str, None]:
    """The public names that classes set on their objects, or declare."""
    return dict.fromkeys(
        name
        for path in sorted(tree)
        if path.endswith(".py") and (module := parse_or_none(tree.files[path]))
        for node in ast.walk(module)
        if isinstance(node, ast.ClassDef)
        for name in _fields_of(node)
        if not name.startswith("_")
    )


def _fields_of(owner: ast.ClassDef) -> Iterator[str]:
    for statement in owner.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id
    for node in ast.walk(owner):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
