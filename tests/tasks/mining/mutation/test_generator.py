"""Bugs that are planted: one place, in the function's own words, and never nothing."""

import ast
import random
import textwrap

import pytest

from gametape.tasks.mining.functions import functions_in
from gametape.tasks.mining.mutation.generator import Mutation, function_mutations


def _mutations(source: str, name: str = "f", seed: int = 0) -> list[Mutation]:
    (function,) = (one for one in functions_in("m.py", source) if one.qualname == name)
    return [*function_mutations(source, function, random.Random(seed))]


def _changed(body: str, kind: str) -> set[str]:
    source = f"def f(a, b):\n{textwrap.indent(body, '    ')}\n"
    return {textwrap.dedent(one.after).strip("\n") for one in _mutations(source) if one.kind == kind}


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("boundary", "return a <  b", {"return a <=  b"}),
        ("comparison", "return a not  in b", {"return a in b"}),
        ("comparison", "return (a) == (b)", {"return (a) != (b)"}),
        ("boolean operator", "return a and b", {"return a or b"}),
        ("missing condition", "return a and b", {"return a", "return b"}),
        ("negated condition", "if a:\n    b()", {"if not a:"}),
        ("removed not", "while not a:\n    b()", {"while a:"}),
        ("operator", "a += b", {"a -= b"}),
        ("swapped operands", "return a.x - b[0]", {"return b[0] - a.x"}),
        ("swapped arguments", 'g(a, "x", *b) if a else g(a, "x")', {'g(a, "x", *b) if a else g("x", a)'}),
        ("swapped arguments", "g(x=a, y=b)", {"g(x=b, y=a)"}),
        ("swapped branches", "return 'x' if a else 'y'", {"return 'y' if a else 'x'"}),
        ("off by one", "return a[0]", {"return a[1]"}),
        ("off by one", "return a + 1", {"return a + 2"}),
        ("off by one", "for x in range(len(a)): b(x)", {
            "for x in range(len(a) - 1): b(x)", "for x in range(len(a) + 1): b(x)",
        }),
        ("slice bound", "return a[:b]", {"return a[:b + 1]", "return a[:b - 1]"}),
        ("constant", "return g(a, x=True)", {"return g(a, x=False)"}),
        ("wrong variable", "return g(a)", {"return g(b)"}),
        ("wrong attribute", "return a.x, a.y, a.z()", {"return a.y, a.y, a.z()", "return a.x, a.x, a.z()"}),
        ("wrong key", 'return a["x"] + a["y"]', {'return a["y"] + a["y"]', 'return a["x"] + a["x"]'}),
        ("wrong function", "return max(a, b)", {"return min(a, b)"}),
        ("missing return", "return g(a)", {"g(a)"}),
        ("wrong return", "a.x()\nreturn a", {"return None"}),
        ("loop exit", "for x in a:\n    continue", {"break"}),
        ("dropped statement", "a.append(b)  # note\nreturn a", {""}),
        ("dropped statement", "# add it\na.append(b)\nreturn a", set()),
        ("missing guard", "if not a:\n    return b\nreturn a[0]", {""}),
        ("missing else", "if a:\n    b = 1\nelse:\n    b = 2\nreturn b", {""}),
        ("missing case", "if a:\n    b = 1\nelif b:\n    b = 2\nreturn b", {""}),
        ("early return", "for x in a:\n    b(x)\n\nreturn a", {"return a"}),
        ("exception", "try:\n    a()\nexcept (E, F):\n    b()", {"except E:", "except F:"}),
        ("swallowed exception", "try:\n    a()\nexcept E:\n    raise", {"pass"}),
    ],
)  # fmt: skip
def test_each_kind(kind: str, body: str, expected: set[str]) -> None:
    assert _changed(body, kind) == expected


SOURCE = """\
\ufeffclass A:
    def f(self, items: "list[int]", limit: int = 10) -> int:
        '''Counts 3 < 4 and 5.'''
        total: int = 0
        for item in items:
            if item < limit and item >= 0:
                total += item * 2
        if not total:
            raise ValueError("nothing < %d" % limit)
        log.debug("total %d", total + 1)
        return self.scaled(f"{total + 1}", "ä", total)

def after(): return 1
"""


def test_everything_else_stays_byte_for_byte() -> None:
    for source in (SOURCE, SOURCE.replace("\n", "\r\n"), SOURCE.replace("    ", "\t")):
        found = _mutations(source, "A.f")
        assert len(found) > 20
        for one in found:
            lines = source.splitlines(keepends=True)
            before = one.before.splitlines(keepends=True)
            start = one.line - 1
            assert "".join(lines[start : start + len(before)]).removeprefix("\ufeff") == one.before
            assert "".join([*lines[:start], one.after, *lines[start + len(before) :]]) == one.source


def test_each_is_another_program_and_none_is_there_twice() -> None:
    found = [one.source for one in _mutations(SOURCE, "A.f")]
    shapes = [ast.dump(ast.parse(one.removeprefix("\ufeff"))) for one in found]
    assert len(set(found)) == len(found)
    assert ast.dump(ast.parse(SOURCE.removeprefix("\ufeff"))) not in shapes


def test_what_is_for_people_is_left_alone() -> None:
    for one in _mutations(SOURCE, "A.f"):
        for text in (
            "'''Counts 3 < 4 and 5.'''",
            '"list[int]", limit: int = 10',
            '"nothing < %d" % limit',
            "{total + 1}",
        ):
            assert text in one.source or one.kind == "missing guard"
        assert "total: int" in one.source


def test_the_order_is_drawn_and_goes_through_the_kinds() -> None:
    kinds = [one.kind for one in _mutations(SOURCE, "A.f", seed=1)]
    assert len(set(kinds[: len(set(kinds))])) == len(set(kinds))
    assert _mutations(SOURCE, "A.f", seed=1) == _mutations(SOURCE, "A.f", seed=1)
    assert _mutations(SOURCE, "A.f", seed=1) != _mutations(SOURCE, "A.f", seed=2)
