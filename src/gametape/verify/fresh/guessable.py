"""Answers that need no work: constants, exceptions, what a test has shown already, and arguments that come back, whole,
in part, or as one expression makes them."""

import itertools
from collections.abc import Sequence
from typing import Any

from gametape.verify.fresh.agreement import same_value
from gametape.verify.fresh.effects import heard, tokens_of
from gametape.verify.fresh.program import ProgramStep, object_data
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay.transcript import StandIn

_CONSTANTS: tuple[Any, ...] = (None, True, False, 0, 1, -1, 0.0, 1.0, "", b"", [], {}, (), set(), frozenset())

_CONTAINERS = (list, tuple, set, frozenset, dict)
_MOST_GIVEN, _MOST_PARTS = 8, 40


def is_guessable(
    step: ProgramStep, answer: tuple[Any, ...], recorded_answers: set[str], behind: Sequence[ProgramStep] = ()
) -> bool:
    """Whether a program that does not do the work could give this answer. What an object holds and hands back may be
    what one of the steps behind it was given."""
    if answer[0] not in (words.RETURN, words.SAME) or step.is_comparison:
        return True
    if step.operation == words.RUN_PROGRAM and not _has_output(answer[2]):
        return True
    own = [] if step.operation == words.GET else _arguments(step)
    given = _made_from([one for earlier in behind for one in _arguments(earlier)], own)
    said = heard(answer)
    known = {token for value in given for token in tokens_of(str(value))}
    parts = told_parts(answer)[: -1 if said else None]
    return known >= {*said} and all(_is_known(part, given, recorded_answers) for part in parts)


def _has_output(end: Any) -> bool:
    """Whether a program that was started came to a good end and printed something."""
    return type(end) is tuple and end[0] == 0 and bool(end[1])


def told_parts(answer: tuple[Any, ...]) -> list[Any]:
    """All that an answer tells: its value, what plain arguments were changed to, and what was printed or logged."""
    value = answer[2] if answer[0] == words.RETURN else None
    changed = [update[1] for update in answer[3] if type(update[0]) is int and len(update) > 1]
    printed = answer[4][0].rstrip() if answer[4] else ""
    return [value, *changed, *([printed] if printed else []), *([said] if (said := heard(answer)) else [])]


def _is_known(value: Any, given: Sequence[Any], recorded_answers: set[str]) -> bool:
    """Whether a value is a constant, one that was given, or one that some test shows."""
    if isinstance(value, StandIn) and object_data(value) is not None:
        value = object_data(value)
    if isinstance(value, StandIn) or any(same_value(constant, value) for constant in _CONSTANTS):
        return True
    return repr(value) in recorded_answers or any(same_value(argument, value) for argument in given)


def _made_from(earlier: Sequence[Any], own: Sequence[Any]) -> list[Any]:
    """What was given, its parts, and what one expression makes of it: a text, a length, a sum, another container."""
    given = [value for value in (*earlier, *own) if not isinstance(value, StandIn)][:_MOST_GIVEN]
    containers = [value for value in given if isinstance(value, _CONTAINERS)]
    parts = [part for value in containers for part in itertools.islice(value, _MOST_PARTS)]
    parts += [part for value in containers if isinstance(value, dict) for part in [*value.values()][:_MOST_PARTS]]
    texts = [str(value) for value in given if isinstance(value, (int, float))]
    sized = [value for value in given if isinstance(value, (str, bytes, *_CONTAINERS))]
    others = [kind(value) for value in containers for kind in (list, tuple) if type(value) is not kind]
    sums = [first + second for first, second in itertools.permutations(given, 2) if _may_be_added(first, second)]
    told = ([value for value in group if value is not None] for group in (own, given))
    several = [values for group in told for values in (tuple(group), [*group]) if len(group) > 1]
    return [*given, *parts, *texts, *map(len, sized), *others, *sums, *several]


def _may_be_added(first: Any, second: Any) -> bool:
    return type(first) is type(second) and type(first) in (int, float, str, bytes, list, tuple)


def _arguments(step: ProgramStep) -> list[Any]:
    return [
        argument
        for field in step.fields[1:]
        for argument in (field if isinstance(field, tuple) else field.values() if isinstance(field, dict) else [field])
    ]
