"""Short expressions over what a call was given: a grammar of guesses.

An answer that one short expression makes of the arguments, or of what an object was given before, needs no work where
the inputs are easy: the first and the last element are the least and the greatest of a sorted list, and first in, first
out is right where the first job has the least rank. `right_expressions` finds all of them that give an answer, of depth
one and two; `evaluate` asks one about another call; `source_of` writes it down as Python.
"""

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Expression = tuple[str, ...] | tuple[Any, ...]
"""`(template, operand, ...)`; an operand is an expression or the name of a value."""
Operand = str | Expression
Values = Mapping[str, Any]
"""What an expression may use, by name: arguments, and what an object was given."""

_OF_ONE = (
    *("{0}[0]", "{0}[-1]", "{0}[1]", "{0}[1:]", "{0}[:-1]", "{0}[::-1]", "{0}[len({0}) // 2]"),
    *("{0}[:2]", "{0}[:3]", "{0}[2:]", "{0}[-2:]", "[part[0] for part in {0}]", "[part[1] for part in {0}]"),
    *("len({0})", "len(set({0}))", "sum({0})", "min({0})", "max({0})", "sum({0}) / len({0})", "sum({0}.values())"),
    *("sorted({0})", "sorted({0}, reverse=True)", "list({0})", "tuple({0})", "set({0})", "list(dict.fromkeys({0}))"),
    *("list({0}.keys())", "list({0}.values())", "list({0}.items())", "dict({0})", "dict(enumerate({0}))"),
    *("str({0})", "repr({0})", "int({0})", "float({0})", "bool({0})", "not {0}", "abs({0})", "-{0}", "round({0})"),
    *("{0}.strip()", "{0}.lower()", "{0}.upper()", "{0}.title()", "{0}.capitalize()", "{0}.swapcase()"),
    *("{0}.split()", "{0}.split(',')", "{0}.splitlines()", "''.join({0})", "' '.join({0})", "', '.join({0})"),
    *("','.join({0})", "'-'.join({0})", "'\\n'.join({0})", "''.join({0}.split())", "{0}.replace(' ', '-')"),
    *("{0}.replace(' ', '_')", "{0} + 1", "{0} - 1", "{0} * 2", "{0} // 2", "{0} / 2", "{0}.encode()", "{0}.decode()"),
    *("list(range({0}))", "{0} > 0", "{0} % 2 == 0", "{0}.isdigit()", "{0}.isalpha()"),
)
_OF_TWO = (
    *("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "{0} // {1}", "{0} % {1}", "({0}, {1})", "[{0}, {1}]"),
    *("{0} == {1}", "{0} < {1}", "{0} in {1}", "{0}[{1}]", "{0}.get({1})", "{0}[:{1}]", "{0}[-{1}:]", "{0}[{1}:]"),
    *("min({0}, {1})", "max({0}, {1})", "{0}.split({1})", "{0}.join({1})", "{0}.count({1})", "{0}.index({1})"),
    *("{0}.startswith({1})", "{0}.endswith({1})", "f'{{{0}}}{{{1}}}'", "f'{{{0}}} {{{1}}}'", "{0} | {1}", "{0} & {1}"),
    *("[{0}] * {1}", "{0}.replace({1}, '')", "dict(zip({0}, {1}))", "list(zip({0}, {1}))"),
)
_OF_RESULTS = (
    *("{0}[:{1}]", "{0}[-{1}:]", "{0}[{1}:]", "{0}[{1}]", "{0}.get({1})", "{0} in {1}", "{1} in {0}", "{1}.join({0})"),
    *("{0} + {1}", "{1} + {0}", "{0} - {1}", "{1} - {0}", "{0}.count({1})"),
)
"""Operations on what another operation made and a value."""
_MEAN_OF_TWO = "({0} + {1}) / 2"
_MOST_VALUES, _MOST_OF_TWO, _MOST_SECOND, _MOST_BESIDE = 14, 5, 60, 3
"""Values of a call, those of them that stand beside each other, the results to which a second operation applies, and
the values that stand beside those."""
_LARGEST, _LONGEST = 10**12, 2000
_MOST_PARTS = 4
_MOST_SAME = {2: 16, 3: 6, 4: 4}
"""How many expressions of one value are tried for a part of so many parts."""
_REPEATING = ("[{0}] * {1}", "list(range({0}))")
_MULTIPLYING = (*_REPEATING, "{0} * {1}", "{0} * 2")


def evaluate(expression: Operand, values: Values) -> Any:
    """What an expression gives. Raises whatever it raises; LookupError where a value is not there."""
    if isinstance(expression, str):
        return values[expression]
    template, *operands = expression
    return _operation(template, len(operands))(*(evaluate(operand, values) for operand in operands))


def source_of(expression: Operand, names: Mapping[str, str]) -> str:
    """The expression as Python, with these names for the values. Raises LookupError where one has none."""
    if isinstance(expression, str):
        return names[expression]
    template, *operands = expression
    return template.format(
        *(f"({text})" if " " in text else text for text in (source_of(one, names) for one in operands))
    )


def gives(expression: Operand, values: Values, answer: Any) -> bool:
    """Whether an expression gives this answer."""
    try:
        return is_same(evaluate(expression, values), answer)
    except _FAILURES:
        return False


def right_expressions(values: Values, answer: Any) -> set[Operand]:
    """The expressions that give this answer."""
    known: dict[Operand, Any] = {
        name: value for name, value in itertools.islice(values.items(), _MOST_VALUES) if _is_small(value)
    }
    if not _is_small(answer):
        return set()
    first: dict[Operand, Any] = dict(known)
    for name, value in known.items():
        first |= _applied(_OF_ONE, (name,), (value,))
    beside = [*known.items()][:_MOST_OF_TWO]
    for (one, value), (other, second) in itertools.permutations(beside, 2):
        first |= _applied(_OF_TWO, (one, other), (value, second))
    found = {expression for expression, value in first.items() if is_same(value, answer)}
    found |= _from_parts(first, answer)
    if type(answer) in (int, float):
        found |= _from_numbers(first, answer)
    inner = [pair for pair in _each_once(first) if pair[0] not in known][:_MOST_SECOND]
    for operand, value in inner:
        made = _applied(_OF_ONE, (operand,), (value,))
        for name, other in beside[:_MOST_BESIDE]:
            made |= _applied(_OF_RESULTS, (operand, name), (value, other))
        found |= {expression for expression, result in made.items() if is_same(result, answer)}
    return found


def is_same(value: Any, answer: Any) -> bool:
    """Whether a value is the answer, with exact types of all but numbers that are close."""
    if type(value) is not type(answer):
        return False
    if type(answer) is float:
        return value == answer or math.isclose(value, answer, rel_tol=1e-9)
    return bool(value == answer) and (isinstance(answer, (str, int, set, frozenset)) or repr(value) == repr(answer))


def _from_parts(first: Mapping[Operand, Any], answer: Any) -> set[Operand]:
    """Tuples and lists of a few parts, each of which an expression gives."""
    if type(answer) not in (list, tuple) or not 2 <= len(answer) <= _MOST_PARTS:
        return set()
    of_part = [
        [one for one, value in first.items() if is_same(value, part)][: _MOST_SAME[len(answer)]] for part in answer
    ]
    places = ", ".join(f"{{{at}}}" for at in range(len(answer)))
    template = f"({places})" if type(answer) is tuple else f"[{places}]"
    return {(template, *parts) for parts in itertools.product(*of_part)}


def _from_numbers(first: Mapping[Operand, Any], answer: float) -> set[Operand]:
    """Arithmetic of two numbers that expressions give."""
    named: dict[float, list[Operand]] = defaultdict(list)
    for one, value in first.items():
        if type(value) in (int, float) and len(named[value]) < _MOST_SAME[2]:
            named[value].append(one)
    found: set[Operand] = set()
    for value, ones in named.items():
        others = {
            "{0} + {1}": answer - value,
            "{0} - {1}": value - answer,
            "{0} * {1}": answer / value if value else None,
            "{0} / {1}": value / answer if answer else None,
            _MEAN_OF_TWO: 2 * answer - value,
        }
        for template, other in others.items():
            for one, second in itertools.product(ones, named.get(other, ()) if other is not None else ()):
                if gives((template, "0", "1"), {"0": first[one], "1": first[second]}, answer):
                    found.add((template, one, second))
    return found


def _applied(templates: Iterable[str], operands: tuple[Operand, ...], values: tuple[Any, ...]) -> dict[Operand, Any]:
    """What each of these operations gives, where it gives something."""
    made: dict[Operand, Any] = {}
    for template in templates:
        try:
            value = _operation(template, len(operands))(*values)
        except _FAILURES:
            continue
        if _is_small(value):
            made[(template, *operands)] = value
    return made


def _each_once(first: Mapping[Operand, Any]) -> Iterable[tuple[Operand, Any]]:
    """Each value with the first expression that gives it."""
    seen: set[tuple[type, str]] = set()
    for one, value in first.items():
        key = (type(value), repr(value))
        if key not in seen:
            seen.add(key)
            yield one, value


@functools.cache
def _operation(template: str, operands: int) -> Callable[..., Any]:
    """The template as a function. It is one of this file's own, or a tuple or list of its operands."""
    names = [f"value_{at}" for at in range(operands)]
    text = f"lambda {', '.join(names)}: {template.format(*names)}"
    compute: Callable[..., Any] = eval(text, {})
    return _bounded(compute, template) if template in _MULTIPLYING else compute


def _bounded(compute: Callable[..., Any], template: str) -> Callable[..., Any]:
    """An operation whose result may be far larger than its operands: with numbers small enough for it."""

    def bounded(*values: Any) -> Any:
        is_arithmetic = template not in _REPEATING and all(type(value) in (int, float) for value in values)
        most = _LARGEST if is_arithmetic else 100
        if any(type(value) in (int, float) and abs(value) > most for value in values):
            raise OverflowError(template)
        return compute(*values)

    return bounded


def _is_small(value: Any) -> bool:
    """Whether a value is plain data of a size that costs little."""
    if isinstance(value, (str, bytes)):
        return len(value) <= _LONGEST
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        return len(value) <= 100
    return isinstance(value, (int, float, complex)) and (type(value) is not int or value.bit_length() < 300)


_FAILURES = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError, MemoryError)
