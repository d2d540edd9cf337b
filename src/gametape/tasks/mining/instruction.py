"""Write the instruction of a mined task: signatures, docstrings and failing tests, and no line of the deleted code."""

import ast
import functools
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from gametape.syntax.source import parse
from gametape.tasks.mining.functions import Function
from gametape.tasks.mining.leaks.file_index import CodeUnit
from gametape.tasks.mining.leaks.fingerprints import functions_by_line
from gametape.tasks.mining.leaks.scan import match_leak, read_body
from gametape.tasks.mining.leaks.text_statements import statements_in
from gametape.tasks.mining.removal.python_source import FunctionNode

MIN_CODE_LENGTH = 12
"""Shorter lines, such as `return x`, give nothing away."""
_MADE_OF_WORDS = re.compile(r"[\w\s]*")
_DOCTEST = re.compile(r"\s*(?:>>>|\.\.\.)(?:\s|$)")


class FunctionDescription(NamedTuple):
    """A function as an instruction may show it."""

    signature: str
    """With decorators and annotations, as written in the source."""
    docstring: str
    code: frozenset[str]
    """The lines of its body that must not be shown."""

    @property
    def summary(self) -> str:
        """The first sentence or paragraph of the docstring, in one line."""
        return " ".join(self.docstring.split("\n\n", 1)[0].split())


@functools.lru_cache(maxsize=10_000)
def describe_function(function: Function, source: str) -> FunctionDescription:
    """Read a function from the original text of its file."""
    node = functions_by_line(source)[function.line]
    lines = source.splitlines()
    return FunctionDescription(_signature(node, function, lines), ast.get_docstring(node) or "", _code(function, lines))


def _signature(node: FunctionNode, function: Function, lines: list[str]) -> str:
    """The source lines before the body; unparsed from the syntax tree if they cannot be separated from it."""
    for end in range(function.line, node.body[0].lineno):
        text = textwrap.dedent("\n".join(lines[function.first_line - 1 : end]))
        try:
            parse(text + "\n    ...\n")
        except SyntaxError:
            continue
        return text
    bare = parse(ast.unparse(node)).body[0]
    assert isinstance(bare, ast.FunctionDef | ast.AsyncFunctionDef)
    bare.body = [ast.Expr(ast.Constant(...))]
    return ast.unparse(bare).removesuffix("\n    ...").removesuffix(" ...")


def _code(function: Function, lines: list[str]) -> frozenset[str]:
    body = (line.strip() for line in lines[function.body_line - 1 : function.last_line])
    return frozenset(line for line in body if len(line) >= MIN_CODE_LENGTH and not _MADE_OF_WORDS.fullmatch(line))


def shows_code(line: str, code: Iterable[str]) -> bool:
    """Whether a line of text contains a line of code. Doctest examples do not count."""
    return not _DOCTEST.match(line) and any(code_line in line for code_line in code)


def without_code(text: str, code: Iterable[str]) -> str:
    """A text without the lines that contain code."""
    return "\n".join(line for line in text.splitlines() if not shows_code(line, code))


MAX_TESTS_LISTED = 20
MAX_MESSAGES = 6
_LONGEST_MESSAGE = 200
_LONGEST_SUMMARY = 400
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")
_PATH = re.compile(r"(?<![\w/])(?:/[\w.@+-]+){2,}")
_REFUSAL = re.compile(r"(?:\w+\.)*NotImplementedError:?\s*$")
_MARKUP = re.compile(r"^(?:[=~#*`^-]{3,}|\.\. |:\w+:|\[!|!\[|<|\|)")

FeatureSources = Mapping[Function, str]
"""The deleted functions of one feature, with the original text of their files."""


@dataclass(frozen=True)
class InstructionBrief:
    """What an instruction is written from."""

    project: str
    """The distribution's name."""
    description: str
    """What the project says about itself; the first paragraph is quoted."""
    kind: Literal["stub", "removal", "bug"]
    """`stub`: signatures are left in the files. `removal`: nothing is. `bug`: the code is there, with a bug."""
    features: Sequence[FeatureSources]
    """One for a single deletion, several for a union. For a bug: the functions before it was injected."""
    failing: Mapping[str, str]
    """The visible tests that fail, with their failure messages."""
    source_paths: Sequence[str]
    import_roots: Sequence[str] = (".",)
    stage: tuple[int, int] | None = None
    """The number of the stage, from 1, and how many there are; None if the task has no stages."""

    @property
    def functions(self) -> dict[Function, str]:
        return {function: text for feature in self.features for function, text in feature.items()}


def write_instruction(brief: InstructionBrief) -> str:
    """The instruction of a task, or of one stage, in Markdown. Raises `ValueError` if it would show deleted code."""
    code = frozenset[str]().union(
        *(describe_function(function, text).code for function, text in brief.functions.items())
    )
    request = _bug(brief) if brief.kind == "bug" else _missing(brief, code)
    parts = [_title(brief), *_about(brief, code), *request, *_tests(brief, code), _what_counts(brief)]
    text = "\n\n".join(part for part in parts if part) + "\n"
    refuse_if_code_shown(text, brief.functions)
    return text


def write_chain_instruction(briefs: Sequence[InstructionBrief]) -> str:
    """The instruction over all stages of a chain. Each stage also has its own, from its own brief."""
    first = briefs[0]
    number = sum(len(brief.functions) for brief in briefs)
    lines = [
        f"# {first.project}: work in {len(briefs)} stages",
        *_about(first, frozenset()),
        f"{_count(number, 'function')} of {first.project} are missing. Each of the {len(briefs)} stages has "
        "its own instruction and its own tests, and the tests of earlier stages must keep passing.",
        _what_counts(first),
    ]
    return "\n\n".join(lines) + "\n"


def refuse_if_code_shown(text: str, functions: Mapping[Function, str]) -> None:
    """Raise `ValueError` if a text contains the body of one of these functions, much of it, or a line of its code."""
    unit = CodeUnit("text", 1, frozenset(), statements_in("instruction.md", text))
    descriptions = {function: describe_function(function, source) for function, source in functions.items()}
    signature_lines = {
        line.strip() for description in descriptions.values() for line in description.signature.splitlines()
    }
    for function, source in functions.items():
        description = descriptions[function]
        if match_leak(read_body(function, source), unit):
            raise ValueError(f"the instruction gives away {function.name}")
        for line in text.splitlines():
            if line.strip() not in signature_lines and shows_code(line, description.code - signature_lines):
                raise ValueError(f"the instruction shows a line of {function.name}: {line.strip()}")


def _title(brief: InstructionBrief) -> str:
    stage = f", stage {brief.stage[0]} of {brief.stage[1]}" if brief.stage else ""
    if brief.kind == "bug":
        return f"# Find and fix a bug in {brief.project}{stage}"
    names = [f"`{function.qualname}`" for function in brief.functions]
    what = " and ".join(names) if len(names) <= 2 else f"{names[0]} and {len(names) - 1} more functions"
    return f"# Write {what} for {brief.project}{stage}"


def _about(brief: InstructionBrief, code: frozenset[str]) -> list[str]:
    """The first paragraph of the project's own description that is prose."""
    for paragraph in without_code(brief.description, code).split("\n\n"):
        lines = [line.strip() for line in paragraph.strip().splitlines()]
        words = " ".join(lines)
        if len(words.split()) >= 3 and not any(_MARKUP.match(line) for line in lines):
            return [f"{brief.project}: {_shortened(words, _LONGEST_SUMMARY)}"]
    return []


def _bug(brief: InstructionBrief) -> list[str]:
    single = len({_without_parameters(test) for test in brief.failing}) == 1
    return [
        f"Something in {brief.project} that used to work is broken. {'The test' if single else 'The tests'} below "
        f"{'shows' if single else 'show'} it. Find the cause and mend it; making just these calls come out right is "
        "not enough. Names and parameters stay as they are, and so does everything that works."
    ]


def _missing(brief: InstructionBrief, code: frozenset[str]) -> Iterator[str]:
    yield _asked(brief)
    for number, feature in enumerate(brief.features, start=1):
        if len(brief.features) > 1:
            yield f"## Part {number} of {len(brief.features)}"
        yield from _feature(brief, feature, code)


def _asked(brief: InstructionBrief) -> str:
    several = len(brief.functions) > 1
    if brief.kind == "stub" and several:
        left = "signatures and docstrings" if _all_documented(brief) else "signatures"
        return (
            f"The bodies of these functions are missing. Their {left} are still in the files, and calling them raises "
            "`NotImplementedError`. Write them."
        )
    if brief.kind == "stub":
        left = "signature and its docstring are" if _all_documented(brief) else "signature is"
        return (
            f"The body of this function is missing. Its {left} still in the file, and calling it raises "
            "`NotImplementedError`. Write it."
        )
    if several:
        return (
            "These functions were taken out, with the imports and exports that only they needed. Write them again, in "
            "the same files and with the same signatures, and export them where the tests import them from."
        )
    return (
        "This function was taken out, with the imports and exports that only it needed. Write it again, in the same "
        "file and with the same signature, and export it where the tests import it from."
    )


def _all_documented(brief: InstructionBrief) -> bool:
    described = (describe_function(name, source) for feature in brief.features for name, source in feature.items())
    return all(description.docstring.strip() for description in described)


def _feature(brief: InstructionBrief, feature: FeatureSources, code: frozenset[str]) -> Iterator[str]:
    for path in sorted({function.path for function in feature}):
        yield f"In `{path}`:"
        for function in sorted(member for member in feature if member.path == path):
            description = describe_function(function, feature[function])
            yield _fenced("python", description.signature, f"**`{function.qualname}`**")
            yield _described(brief, description, code)


def _described(brief: InstructionBrief, description: FunctionDescription, code: frozenset[str]) -> str:
    if brief.kind == "stub":
        return _shortened(without_code(description.summary, code), _LONGEST_SUMMARY)
    text = without_code(description.docstring, code).strip()
    return _fenced("text", text, "Its docstring:") if text else ""


def _tests(brief: InstructionBrief, code: frozenset[str]) -> Iterator[str]:
    """The failing tests by file, their messages, and the command that runs them."""
    cases: dict[str, int] = {}
    for test in brief.failing:
        cases[_without_parameters(test)] = cases.get(_without_parameters(test), 0) + 1
    yield "## Tests"
    yield f"{_count(len(cases), 'visible test')} {'fails' if len(cases) == 1 else 'fail'} now and must pass:"
    lines = []
    last = ""
    for test in [*cases][:MAX_TESTS_LISTED]:
        file, _, name = test.partition("::")
        if file != last:
            lines.append(f"- `{file}`")
            last = file
        lines.append(f"  - `{name}`" + (f" ({cases[test]} cases)" if cases[test] > 1 else ""))
    if len(cases) > MAX_TESTS_LISTED:
        lines.append(f"- and {len(cases) - MAX_TESTS_LISTED} more")
    yield "\n".join(lines)
    messages = [*dict.fromkeys(message for message in map(_message, brief.failing.values()) if message)]
    messages = [message for message in messages if not shows_code(message, code)][:MAX_MESSAGES]
    if messages:
        yield _fenced("text", "\n".join(messages), "The messages:")
    yield _fenced("sh", _command(brief, cases), "Run them with")


def _command(brief: InstructionBrief, tests: Iterable[str]) -> str:
    files = " ".join([*dict.fromkeys(_quoted(test.partition("::")[0]) for test in tests)][:MAX_TESTS_LISTED])
    roots = [root for root in brief.import_roots if root not in ("", ".")]
    path = f"PYTHONPATH={_quoted(':'.join(brief.import_roots))} " if roots else ""
    return f"{path}python -m pytest {files}"


def _what_counts(brief: InstructionBrief) -> str:
    paths = ", ".join(f"`{path}`" for path in brief.source_paths)
    return (
        f"Only changes in {paths} count; do not change test files. Every test that passes now must keep passing. "
        "Further tests that you cannot see ask for the same behaviour with other inputs."
    )


def _message(report: str) -> str:
    """The line of a failure that says what went wrong, without addresses and paths, which change from run to run.
    Empty for the `NotImplementedError` of a stub."""
    lines = [line.strip() for line in report.splitlines() if line.strip()]
    errors = [line.removeprefix("E ").strip() for line in lines if line.startswith("E ")]
    line = errors[0] if errors else lines[-1] if lines else ""
    line = _PATH.sub(lambda match: match[0].rsplit("/", 1)[-1], _ADDRESS.sub("0x...", line))
    return "" if _REFUSAL.search(line) else _shortened(line, _LONGEST_MESSAGE)


def _fenced(language: str, text: str, above: str) -> str:
    """A code block whose fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{above}\n\n{fence}{language}\n{text}\n{fence}"


def _without_parameters(test: str) -> str:
    return test.partition("[")[0]


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w./:@+-]+", word) else "'" + word.replace("'", "'\\''") + "'"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3].rstrip() + "..."
