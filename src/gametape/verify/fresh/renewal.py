"""Programs in which all plain data is new.

Where missing code is reached through other code, a change in one place may leave all that the missing code is asked as
some test shows it: the rows of a table stay, and its border is another one. So a program is also drawn with every
number, text and size changed, the same value to the same new one wherever it stands.
"""

import random
from dataclasses import dataclass, field, replace
from typing import Any

from gametape.verify.fresh.corpus import KEYS, Place, ValueCorpus, call_key, children
from gametape.verify.fresh.program import Program, part_at, with_part
from gametape.verify.fresh.program_edits import program_places
from gametape.verify.fresh.text_edits import TextEdits
from gametape.verify.fresh.value_edits import ValueEdits

_TRIES = 4
_RESIZED = 0.25
"""How often a list has another length, where lists of several lengths were seen at its place."""
_MANY_KEYS = 8
"""So many different keys at one place are data, and fewer are the names of fields."""


def renew_program(
    program: Program, corpus: ValueCorpus, drawn: dict[Place, list[Any]], rng: random.Random
) -> Program | None:
    """The program with other data in all of its arguments. None if it came out as one that was recorded."""
    renewal = _Renewal(corpus, ValueEdits(corpus, drawn, rng), rng)
    steps = list(program.steps)
    for index, place, path in program_places(program):
        new = renewal.renewed(part_at(steps[index].fields, path), place)
        steps[index] = replace(steps[index], fields=with_part(steps[index].fields, path, new))
    changed = [
        step.fields != old.fields and call_key(step) not in corpus.recorded_calls
        for step, old in zip(steps, program.steps, strict=True)
    ]
    return replace(program, steps=tuple(steps), renewed=True) if any(changed) else None


@dataclass
class _Renewal:
    """New values for old ones, each old one always the same."""

    corpus: ValueCorpus
    edits: ValueEdits
    rng: random.Random
    known: dict[tuple[type, str], Any] = field(default_factory=dict)

    def renewed(self, value: Any, place: Place) -> Any:
        if isinstance(value, (list, tuple)):
            parts = [self.renewed(part, inner) for inner, _, part in children(place, value)]
            return type(value)(self._sized(parts, place))
        if isinstance(value, (set, frozenset)):
            return type(value)(self.renewed(part, inner) for inner, _, part in children(place, value))
        if isinstance(value, dict):
            keys = (*place, KEYS)
            are_data = len(self.corpus.at(keys).values) >= _MANY_KEYS
            return {
                self.renewed(key, keys) if are_data else key: self.renewed(part, inner)
                for inner, key, part in children(place, value)
            }
        if value is None or type(value) is bool:
            return self.edits.edit(value, place)
        known = (type(value), repr(value))
        if known not in self.known:
            self.known[known] = self._new(value, place)
        new = self.known[known]
        return new if self.corpus.at(place).admits(new) else self._new(value, place)

    def _new(self, value: Any, place: Place) -> Any:
        """Another value of the type, if a few tries give one: one that no test gave here, where there is one."""
        seen = self.corpus.at(place)
        is_text = type(value) is str and not seen.is_choice and not value.startswith(("/", "~", "{", "["))
        texts, found = TextEdits(seen, self.rng), value
        for _ in range(_TRIES):
            new = texts.renew(value) if is_text else self.edits.edit(value, place)
            if type(new) is type(value) and new != value:
                found = new
                if new not in seen.values:
                    break
        return found

    def _sized(self, parts: list[Any], place: Place) -> list[Any]:
        sizes = {len(other) for other in self.corpus.at(place).values if isinstance(other, (list, tuple))}
        if len(sizes) < 2 or not parts or self.rng.random() > _RESIZED:
            return parts
        at = self.rng.randrange(len(parts))
        return parts[:at] + parts[at + 1 :] if self.rng.random() < 0.5 else [*parts, parts[at]]
