"""Draw new programs from recorded ones: change some of the plain data in their arguments."""

import random
from dataclasses import dataclass, replace
from typing import Any

from gametape.verify.fresh.corpus import KEYS, Place, ValueCorpus, argument_places, call_key, children, is_plain
from gametape.verify.fresh.program import Path, Program, ProgramStep, part_at, with_part
from gametape.verify.fresh.value_edits import ValueEdits
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.proxy_decoys import reordered

_FOLLOWED = 0.75
"""How often a value that stands in several calls of a program changes in all of them."""


def with_other_orders(program: Program, rng: random.Random) -> Program:
    """The program in which an object that is compared with plain data is compared with it in other orders too."""
    steps = tuple(
        replace(step, fields=(step.fields[0], (*step.fields[1], *reordered(step.fields[1][0], rng))))
        if step.operation == words.EQUALS and len(step.fields[1]) == 1
        else step
        for step in program.steps
    )
    return replace(program, steps=steps)


def program_places(program: Program) -> list[tuple[int, Place, Path]]:
    """The arguments of a program that may be changed: step, place, path in the fields."""
    return [
        (index, place, path)
        for index, step in enumerate(program.steps)
        for place, path in argument_places(step.function, step.operation, step.fields)
        if _may_change(part_at(step.fields, path))
    ]


def _may_change(value: Any) -> bool:
    return is_plain(value) or isinstance(value, (list, tuple, dict))


def draw_program(
    program: Program, corpus: ValueCorpus, drawn: dict[Place, list[Any]], rng: random.Random
) -> Program | None:
    """A program with other data in one to three of its arguments. None if it came out as one that was recorded."""
    places = program_places(program)
    if not places:
        return None
    steps = list(program.steps)
    edits = ValueEdits(corpus, drawn, rng)
    for index, place, path in rng.sample(places, min(len(places), rng.choice((1, 1, 2, 3)))):
        step = steps[index]
        value = part_at(step.fields, path)
        edits.changes.clear()
        new = edits.edit(value, place)
        if not _same_kind(value, new, corpus, place):
            continue
        steps[index] = replace(step, fields=with_part(step.fields, path, new))
        if rng.random() < _FOLLOWED:
            for before, after in edits.changes:
                _follow(steps, before, after, corpus)
    is_new = any(
        step.fields != old.fields and call_key(step) not in corpus.recorded_calls
        for step, old in zip(steps, program.steps, strict=True)
    )
    return replace(program, steps=tuple(steps)) if is_new else None


def _same_kind(value: Any, new: Any, corpus: ValueCorpus, place: Place) -> bool:
    return type(new) is type(value) or type(new) in {type(other) for other in corpus.at(place).values}


def _follow(steps: list[ProgramStep], before: Any, after: Any, corpus: ValueCorpus) -> None:
    """Put the new value wherever the old one stands as an argument, if it is one that says something and the place
    admits the new one."""
    if before in (None, True, False, 0, 1, "") or type(before) not in (str, int, float, bytes):
        return
    for index, step in enumerate(steps):
        for place, path in argument_places(step.function, step.operation, step.fields):
            value = part_at(step.fields, path)
            changed = _Follower(corpus, before, after).replaced(value, place)
            if changed is not value:
                steps[index] = replace(steps[index], fields=with_part(steps[index].fields, path, changed))


@dataclass(frozen=True)
class _Follower:
    """Puts one value in place of another."""

    corpus: ValueCorpus
    before: Any
    after: Any

    def replaced(self, value: Any, place: Place) -> Any:
        """The value with each leaf that equals `before` replaced; the value itself where there is none."""
        if type(value) is type(self.before) and value == self.before:
            return self.after if self.corpus.at(place).admits(self.after) else value
        if not isinstance(value, (list, tuple, dict)):
            return value
        parts = [(key, old, self.replaced(old, inner)) for inner, key, old in children(place, value)]
        if isinstance(value, dict):
            pairs = [(key, self.replaced(key, (*place, KEYS)), old, new) for key, old, new in parts]
            same = all(old is new and key is other for key, other, old, new in pairs)
            return value if same else {other: new for _, other, _, new in pairs}
        return value if all(old is new for _, old, new in parts) else type(value)(new for _, _, new in parts)
