"""Trivial programs for a task: every missing function answers a constant, hands an argument back, raises, or is
one plain expression of its arguments.

Whatever such a program earns, a task pays for nothing; `floor` measures it.
"""

import ast
import builtins
import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gametape.record.loaded_task import LoadedTask
from gametape.syntax.definitions import last_name
from gametape.syntax.expected_calls import ExpectedCall, compared_sides, extract_expected_calls, extract_refused_calls
from gametape.syntax.names import bound_names
from gametape.syntax.source import parse, parse_or_none
from gametape.verify.expected_errors import errors_waited_for, texts_looked_for, texts_of_errors
from gametape.verify.fresh.expressions import source_of
from gametape.verify.fresh.guesses import likeliest_expressions
from gametape.verify.jobs import file_of
from gametape.verify.missing_functions import MissingFunction, find_missing_functions
from gametape.verify.stub_bodies import fill_task, render_body, replace_body

CONSTANTS = ("None", "True", "False", "0", "1", "-1", "''", "b''", "[]", "{}", "()", "set()", "iter(())")
"""The plain value of each type that a function is likely to answer."""
ERRORS = ("ValueError", "TypeError", "KeyError")
"""Errors that tests ask for most; `raises` in the task's tests adds others."""
EXPRESSIONS = (
    "str({0})",
    "len({0})",
    "list({0})",
    "tuple({0})",
    "{0}[0]",
    "{0}[-1]",
    "({0}, {1})",
    "{0} + {1}",
)
"""What one expression makes of the first arguments, such as few functions have to compute."""
_FIELDS = ("first", "last")
_COMPUTED = (" of its arguments", " field of its object")
_MOST_POSITIONS = 3
_MOST_NAMED_ERRORS = 3
_MOST_COMMON_ANSWERS = 2
_MOST_LIKELY = 2
_KEEPS = "vars({own}).setdefault('_held', []).append({first})"
_HELD = "next(held for held in vars({own}).values() if isinstance(held, list))"
_HOLDERS = {
    "hands out first what came first": f"return {_HELD}.pop(0)",
    "hands out first what came last": f"return {_HELD}.pop()",
    "answers with what came last": f"return {_HELD}[-1]",
}
"""What a method without arguments does where those with arguments keep what they are given."""
_LONGEST_ANSWER = 200
_MOST_KNOWN_CALLS = 60
_NEAREST = """
_, _answer, _is_refused = max({known}, key=lambda row:
    __import__('difflib').SequenceMatcher(None, row[0], repr(({asked},))).ratio())
if _is_refused:
    {refuse}
return {answer}
"""
"""What is done with the visible call whose arguments read most like those at hand."""

_LOOKING = re.compile(rb"\b(capsys|capfd|caplog|recwarn|warns|assertLogs|assertWarns|tmp_path|tmpdir|tempfile)\b")
_MOST_TEXTS, _MOST_NUMBERS, _MOST_WORDED = 40, 60, 60
_SAYS = """
_said = "\\n".join({texts!r})
print(_said)
__import__("logging").getLogger("said").error(_said)
__import__("warnings").warn(_said)
for _given in [{given}]:
    try:
        open(_given, "w").write(_said)
    except (OSError, TypeError, ValueError):
        continue
"""
"""What says everything in each way in which a test may hear it."""
_RETURNS_TEXTS = """
import re
_texts, _given = {texts!r}, [{given}]
_words = {{word for _one in _given for word in re.findall(r"[^\\W\\d]+",
    _one.read() if hasattr(_one, "read") else str(_one))}}
_said = {{re.sub("[0-9]+", "0", re.sub(_own, _word, _text))
    for _text in _texts for _own in re.findall(r"[^\\W\\d]+", _text) for _word in _words}}
return "\\n".join([*_texts, *(re.sub("[0-9]+", str(_number), _text)
    for _text in sorted(_said)[:{most}] for _number in range({numbers}))])
"""
"""What answers with every text, also with each word of what it is given in place of one of the text's."""

_KnownCall = tuple[str, Any, bool]
"""The arguments of a visible call, as text, its answer, and whether it is refused."""


@dataclass(frozen=True)
class TrivialBody:
    """One body that does no work. It stands in each function for which it can be written."""

    words: str
    """The body in words: `returns 0`, `returns its first argument`, `raises ValueError`."""
    by_function: Mapping[str, str]
    """The statement for each function, by its qualified name."""


@dataclass(frozen=True)
class TrivialProgram:
    """The files of a task with a trivial body in each missing function. Without any it is the start itself."""

    words: str
    files: Mapping[str, bytes]
    raises: bool = False
    """Whether all it does is to raise one error, in one function or in all."""
    computes: bool = False
    """Whether some function is an expression of what it has; where that passes every test, it is the work."""


class TrivialPrograms:
    """Writes the trivial programs of one task."""

    def __init__(self, loaded_task: LoadedTask) -> None:
        self._loaded_task = loaded_task
        self.missing: Sequence[MissingFunction] = find_missing_functions(loaded_task)
        self.bodies: Sequence[TrivialBody] = [*self._write_bodies()] if self.missing else []

    def start(self) -> TrivialProgram:
        return TrivialProgram("the start itself", {})

    def uniform(self, body: TrivialBody) -> TrivialProgram | None:
        """This body in every missing function."""
        return self.combined(dict.fromkeys((item.qualname for item in self.missing), body))

    def combined(self, bodies: Mapping[str, TrivialBody]) -> TrivialProgram | None:
        """A body for each missing function by its qualified name; None where it cannot be written."""

        def statement(item: MissingFunction) -> str:
            return bodies[item.qualname].by_function.get(item.qualname, "return None")

        start = self._loaded_task.start
        try:
            texts = fill_task(
                self._loaded_task, self.missing, statement, lambda path: start.text(path) if path in start else ""
            )
            for text in texts.values():
                parse(text)
        except (SyntaxError, ValueError, KeyError, RecursionError):
            return None
        different = {body.words for body in bodies.values()}
        words = (
            f"every function {different.pop()}"
            if len(different) == 1
            else ", ".join(f"{name} {body.words}" for name, body in bodies.items())
        )
        files = {path: text.encode("utf-8", "surrogateescape") for path, text in texts.items()}
        return TrivialProgram(
            words, files, words.startswith("every function raises "), any(end in words for end in _COMPUTED)
        )

    def in_reference(self, item: MissingFunction, body: TrivialBody) -> TrivialProgram | None:
        """The reference with this body in one function; None without a reference that has it."""
        start, reference = self._loaded_task.start, self._loaded_task.reference
        if reference is None or item.path not in reference:
            return None
        written = render_body(item, body.by_function[item.qualname])
        try:
            text = replace_body(reference.text(item.path), item, written)
            parse(text)
        except (SyntaxError, ValueError, KeyError, RecursionError):
            return None
        files = {path: data for path, data in reference.files.items() if start.files.get(path) != data}
        files[item.path] = text.encode("utf-8", "surrogateescape")
        return TrivialProgram(f"{item.qualname} {body.words}", files)

    def raising_once(self) -> Iterator[TrivialProgram]:
        """One function raises an error that the visible tests ask for, and the others do nothing: an error is mostly
        waited for in one call, after others that must go well."""
        nothing = TrivialBody("returns None", {})
        wanted = {f"raises {error}" for error in self._errors_in_tests()}
        for body in (body for body in self.bodies if body.words in wanted):
            for item in self.missing:
                bodies = {other.qualname: body if other is item else nothing for other in self.missing}
                if program := self.combined(bodies):
                    yield replace(program, raises=True)

    def _write_bodies(self) -> Iterator[TrivialBody]:
        names = [item.qualname for item in self.missing]
        for value in CONSTANTS:
            yield TrivialBody(f"returns {value}", dict.fromkeys(names, f"return {value}"))
        for position, word in zip(range(_MOST_POSITIONS), ("first", "second", "third"), strict=True):
            known = {item.qualname: item.parameters for item in self.missing if len(item.parameters) > position}
            if known:
                returned = {name: f"return {parameters[position]}" for name, parameters in known.items()}
                yield TrivialBody(f"returns its {word} argument", returned)
        own = {item.qualname: item.node.args.args[0].arg for item in self.missing if _is_method(item)}
        if own:
            yield TrivialBody("returns its object", {name: f"return {first}" for name, first in own.items()})
            for word, at in zip(_FIELDS, (0, -1), strict=True):
                fields = {name: f"return [*vars({first}).values()][{at}]" for name, first in own.items()}
                yield TrivialBody(f"returns the {word} field of its object", fields)
            yield from self._holders()
        yield from self._expressions()
        yield from self._likeliest_expressions()
        errors = self._errors_in_tests()
        for error in dict.fromkeys([*ERRORS, *errors]):
            yield TrivialBody(f"raises {error}", {item.qualname: self._raise(item, error) for item in self.missing})
        if len(errors) > 1:
            every = {item.qualname: self._raise_every(item, errors) for item in self.missing}
            yield TrivialBody(f"raises an error that is {' and '.join(errors)}", every)
        yield from self._common_answers()
        if said := self._says_everything():
            yield TrivialBody("says everything", said)
        if returned := self._returns_everything():
            yield TrivialBody("returns everything that is looked for in its answers", returned)
        yield from self._nearest_answers()

    def _raise(self, item: MissingFunction, error: str) -> str:
        """The statement that raises this error, where the file of the function knows its name."""
        return self._say(error if self._is_known_error(item, error) else "ValueError")

    def _raise_every(self, item: MissingFunction, errors: Sequence[str]) -> str:
        """The statement that raises one error that is all of these, as far as the file of the function knows them."""
        known = [error for error in errors if self._is_known_error(item, error)]
        return self._say(f"type('Refused', ({', '.join(known)},), {{}})" if known else "ValueError")

    def _say(self, error: str) -> str:
        """The statement that raises an error of this class, which says every text that the visible tests look for in
        errors. It is made without what the class does with its own arguments."""
        said = "\n".join(self._texts_of_errors)
        return f"raise (lambda kind: kind.__new__(kind, {said!r}))({error})" if said else f"raise {error}"

    @functools.cached_property
    def _texts_of_errors(self) -> list[str]:
        return _with_numbers(texts_of_errors(content for _, content in self._visible_test_files()))

    def _is_known_error(self, item: MissingFunction, error: str) -> bool:
        return error in self._names_around(item) or isinstance(getattr(builtins, error, None), type)

    def _names_around(self, item: MissingFunction) -> frozenset[str]:
        """The names of the file in which a function is missing."""
        content = self._loaded_task.start.files.get(item.path)
        return frozenset(bound_names(parse_or_none(content) or ast.Module([], [])))

    def _errors_in_tests(self) -> list[str]:
        """The errors that the visible tests expect most often."""
        named = errors_waited_for(content for _, content in self._visible_test_files())
        return [name for name, _ in named.most_common(_MOST_NAMED_ERRORS)]

    def _common_answers(self) -> Iterator[TrivialBody]:
        """The values that the visible tests expect of each function most often: constants, and what has a name in the
        function's file, such as the members of an enumeration."""
        expected: dict[str, Counter[str]] = {}
        for call in self._expected_calls():
            expected.setdefault(call.function, Counter())[repr(call.expected)] += 1
        named: dict[str, Counter[str]] = {}
        for function, name in self._expected_names():
            named.setdefault(function, Counter())[name] += 1
        common = {
            item.qualname: (expected.get(item.name, Counter()) + self._names_known_to(item, named)).most_common()
            for item in self.missing
        }
        for rank in range(_MOST_COMMON_ANSWERS):
            answers = {name: f"return {known[rank][0]}" for name, known in common.items() if len(known) > rank}
            if answers:
                word = "answer" if rank == 0 else "answer but one"
                yield TrivialBody(f"returns the commonest {word} of the tests", answers)

    def _expected_names(self) -> Iterator[tuple[str, str]]:
        """The calls of the visible tests that are compared with something that has a name: `f(3) is Light.RED`."""
        for _, content in self._visible_test_files():
            for node in ast.walk(parse(content)):
                for left, right in compared_sides(node):
                    for call, expected in ((left, right), (right, left)):
                        if isinstance(call, ast.Call) and isinstance(expected, ast.Name | ast.Attribute):
                            yield last_name(call.func), ast.unparse(expected)

    def _names_known_to(self, item: MissingFunction, named: Mapping[str, Counter[str]]) -> Counter[str]:
        around = self._names_around(item)
        found = named.get(item.name, Counter())
        return Counter({name: count for name, count in found.items() if name.partition(".")[0] in around})

    def _expressions(self) -> Iterator[TrivialBody]:
        for expression in EXPRESSIONS:
            needed = 2 if "{1}" in expression else 1
            written = {
                item.qualname: f"return {expression.format(*item.parameters)}"
                for item in self.missing
                if len(item.parameters) >= needed
            }
            if written:
                yield TrivialBody(f"returns {expression.format('first', 'second')} of its arguments", written)

    def _likeliest_expressions(self) -> Iterator[TrivialBody]:
        """The expressions that give the most answers of the visible tests."""
        answers: dict[str, list[tuple[Mapping[str, Any], Any]]] = {}
        for call in self._expected_calls():
            for item in self.missing:
                if call.function == item.name and (bound := call.bind(item.parameters)):
                    answers.setdefault(item.qualname, []).append((bound, call.expected))
        likeliest = {name: likeliest_expressions(known[:_MOST_KNOWN_CALLS]) for name, known in answers.items()}
        for rank in range(_MOST_LIKELY):
            written = {
                item.qualname: f"return {source_of(found[rank], {name: name for name in item.parameters})}"
                for item in self.missing
                if len(found := likeliest.get(item.qualname, [])) > rank
            }
            if written:
                yield TrivialBody(f"returns the likeliest expression{' but one' * rank} of its arguments", written)

    def _holders(self) -> Iterator[TrivialBody]:
        """Methods that keep what they are given in a list, and hand out of it."""
        methods = [item for item in self.missing if _is_method(item) and item.name != "__init__"]
        for words, asked in _HOLDERS.items():
            bodies = {}
            for item in methods:
                body = _KEEPS if item.parameters else asked
                bodies[item.qualname] = body.format(own=item.node.args.args[0].arg, first=(*item.parameters, "")[0])
            yield TrivialBody(words, bodies)

    def _says_everything(self) -> dict[str, str]:
        """Where tests look for parts of what is printed, logged, warned of or written: every text of theirs, with every
        small number in place of its numbers, said in all of these ways."""
        contents = [content for _, content in self._visible_test_files()]
        if not any(_LOOKING.search(content) for content in contents):
            return {}
        nodes = [node for content in contents for node in ast.walk(parse(content))]
        texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        said = _with_numbers(texts)
        return {item.qualname: _SAYS.format(texts=said, given=", ".join(item.parameters)) for item in self.missing}

    def _returns_everything(self) -> dict[str, str]:
        """Where tests look for parts of an answer: all of them, in one text."""
        texts = texts_looked_for(content for _, content in self._visible_test_files())
        if not texts:
            return {}
        said, most = _with_numbers(texts), _MOST_WORDED
        return {
            item.qualname: _RETURNS_TEXTS.format(
                texts=said, given=", ".join(item.parameters), most=most, numbers=_MOST_NUMBERS
            )
            for item in self.missing
        }

    def _nearest_answers(self) -> Iterator[TrivialBody]:
        """For each function that the visible tests call with constants, a table of them and its nearest entry: its
        answer or its error; and its error, or else the commonest answer."""
        known = {item.qualname: rows for item in self.missing if (rows := self._known_calls(item))}
        nearest = {name: self._nearest(name, rows, "_answer") for name, rows in known.items()}
        if nearest:
            yield TrivialBody("returns the answer of the nearest visible call", nearest)
        refusing: dict[str, str] = {}
        for name, rows in known.items():
            answers = Counter(repr(answer) for _, answer, is_refused in rows if not is_refused)
            if answers and answers.total() < len(rows):
                refusing[name] = self._nearest(name, rows, answers.most_common(1)[0][0])
        if refusing:
            yield TrivialBody("refuses as the nearest visible call is refused, else returns the commonest", refusing)

    def _nearest(self, name: str, rows: Sequence[_KnownCall], answer: str) -> str:
        item = next(item for item in self.missing if item.qualname == name)
        refuse = self._raise_every(item, self._errors_in_tests())
        return _NEAREST.format(known=rows, asked=", ".join(item.parameters), refuse=refuse, answer=answer)

    def _known_calls(self, item: MissingFunction) -> list[_KnownCall]:
        """The visible calls of a function."""
        calls = [(call, call.expected, False) for call in self._expected_calls()]
        for path, content in self._visible_test_files():
            calls += [(call, None, True) for call in extract_refused_calls(path, content)]
        known = [
            (repr(tuple(bound.values())), expected, is_refused)
            for call, expected, is_refused in calls
            if call.function == item.name and (bound := call.bind(item.parameters))
        ]
        return known[:_MOST_KNOWN_CALLS]

    def _expected_calls(self) -> Iterator[ExpectedCall]:
        """The calls of the visible tests whose answers can be written down."""
        for path, content in self._visible_test_files():
            for call in extract_expected_calls(path, content):
                text = repr(call.expected)
                if len(text) <= _LONGEST_ANSWER and parse_or_none(f"({text})"):
                    yield call

    def _visible_test_files(self) -> Iterator[tuple[str, bytes]]:
        for path in dict.fromkeys(map(file_of, self._loaded_task.task.tests.visible)):
            content = self._loaded_task.start.files.get(path)
            if content is not None and parse_or_none(content) is not None:
                yield path, content


def _with_numbers(texts: Sequence[str]) -> list[str]:
    """Some texts, and with every small number in place of their numbers."""
    short = [text for text in dict.fromkeys(texts) if 1 < len(text) <= _LONGEST_ANSWER][:_MOST_TEXTS]
    numbered = [re.sub("[0-9]+", str(number), text) for text in short for number in range(_MOST_NUMBERS)]
    return list(dict.fromkeys([*short, *numbered]))


def _is_method(item: MissingFunction) -> bool:
    return bool(item.class_name and item.node.args.args and len(item.parameters) < len(item.node.args.args))
