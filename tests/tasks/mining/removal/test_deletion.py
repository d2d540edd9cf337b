"""Carving in the stub tier: bodies go, and not a byte besides."""

import ast

import pytest

from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.functions import Function, functions_in
from gametape.tasks.mining.removal.deletion import delete_functions


def _functions(content: bytes, *names: str, encoding: str = "utf-8") -> list[Function]:
    found = functions_in("m.py", content.decode(encoding))
    return [one for one in found if not names or one.qualname in names]


def _stubbed(content: bytes, *names: str, encoding: str = "utf-8") -> bytes:
    functions = _functions(content, *names, encoding=encoding)
    assert functions
    carved = delete_functions(SourceTree({"m.py": content}), functions, "stub")
    assert carved.stubbed == frozenset(functions)
    assert not carved.removed
    ast.parse(carved.tree.files["m.py"])
    return carved.tree.files["m.py"]


PLAIN = b'''\
import re


@cached
def f(a, b=(1), *, c: int = 2) -> "x":  # as asked
    # first
    x = a + b
    return x  # last

    # below

# of g
def g():
    """Says g."""

    # how
    return """
deep
"""
'''


def test_a_body_goes_with_its_comments_and_nothing_else() -> None:
    assert _stubbed(PLAIN) == (
        b"import re\n\n\n@cached\n"
        b'def f(a, b=(1), *, c: int = 2) -> "x":  # as asked\n    raise NotImplementedError\n\n'
        b'# of g\ndef g():\n    """Says g."""\n    raise NotImplementedError\n'
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            b"def f():\n\tif x:\n\t\ty()\n\treturn 1\n", b"def f():\n\traise NotImplementedError\n", id="tabs"
        ),
        pytest.param(
            b"def f(a,\r\n      b):\r\n    return a\r\nx = 1\r\n",
            b"def f(a,\r\n      b):\r\n    raise NotImplementedError\r\nx = 1\r\n",
            id="CRLF",
        ),
        pytest.param(b"def f():\n    x()\n    y()", b"def f():\n    raise NotImplementedError", id="no final newline"),
        pytest.param(
            b"x = 1\n\x0c\ndef f():\n    '''\x0c'''\n    return 1\n\x0c\ndef g(): pass\n",
            b"x = 1\n\x0c\ndef f():\n    '''\x0c'''\n    raise NotImplementedError\n\x0c\ndef g(): pass\n",
            id="form feeds",
        ),
        pytest.param(
            b"def f():\n    return 1 + \\\n        2 \\\n\nx = 1\n",
            b"def f():\n    raise NotImplementedError\nx = 1\n",
            id="continuations",
        ),
        pytest.param(
            b"def f():\n    'd'; x(); y();\n", b"def f():\n    'd'\n    raise NotImplementedError\n", id="semicolons"
        ),
        pytest.param(
            b"def f(a,  # one: two\n      b  # three: four\n      ): x = a; return x\n",
            b"def f(a,  # one: two\n      b  # three: four\n      ): raise NotImplementedError\n",
            id="on the line of the signature",
        ),
        pytest.param(
            b"class A:\n    async def f(self):\n        @d\n        def g(): 1\n        yield g\n    # A\n    x = 1\n",
            b"class A:\n    async def f(self):\n        raise NotImplementedError\n    # A\n    x = 1\n",
            id="asynchronous generator with a decorated function first",
        ),
        pytest.param(
            b"\xef\xbb\xbfdef f():\n    return '\xc3\xa4' + 'b'\n",
            b"\xef\xbb\xbfdef f():\n    raise NotImplementedError\n",
            id="byte order mark",
        ),
        pytest.param(
            b"def \xc3\xa4\xc3\xb6(x='\xe2\x82\xac'):\n    return 1\n",
            b"def \xc3\xa4\xc3\xb6(x='\xe2\x82\xac'):\n    raise NotImplementedError\n",
            id="characters of several bytes",
        ),
    ],
)
def test_every_way_to_write_a_body(before: bytes, after: bytes) -> None:
    assert _stubbed(before) == after


def test_a_file_keeps_its_encoding() -> None:
    content = "# -*- coding: latin-1 -*-\nx = 'ä'\ndef f():\n    '''ö'''\n    return 'ü'\ny = 'ß'\n".encode("latin-1")
    carved = _stubbed(content, encoding="latin-1")
    assert carved == content.replace("return 'ü'".encode("latin-1"), b"raise NotImplementedError")


def test_a_function_is_known_by_its_line() -> None:
    getting = b"class A:\n    @property\n    def x(self):\n        return 1\n\n"
    content = getting + b"    @x.setter\n    def x(self, v):\n        self.y = v\n"
    getter, setter = _functions(content)
    carved = delete_functions(SourceTree({"m.py": content}), [setter], "stub").tree.files["m.py"]
    assert carved == content.replace(b"self.y = v", b"raise NotImplementedError")
    assert delete_functions(SourceTree({"m.py": content}), [getter], "stub").tree.files["m.py"] != carved


def test_one_after_the_other_is_both_at_once() -> None:
    tree = SourceTree({"m.py": PLAIN})
    both = delete_functions(tree, _functions(PLAIN), "stub").tree
    first = delete_functions(tree, _functions(PLAIN, "f"), "stub").tree
    assert delete_functions(first, _functions(first.files["m.py"], "g"), "stub").tree == both


@pytest.mark.parametrize("tier", ["stub", "removal"])
def test_nothing_carved_is_nothing_changed(tier: str) -> None:
    tree = SourceTree({"m.py": PLAIN, "run": b"\xff"}, frozenset({"run"}))
    carved = delete_functions(tree, [], tier)  # type: ignore[arg-type]
    assert carved.tree == tree


def test_other_files_are_the_same_objects() -> None:
    tree = SourceTree({"m.py": PLAIN, "data.bin": b"\xff\x00"}, frozenset({"m.py"}))
    carved = delete_functions(tree, _functions(PLAIN), "stub").tree
    assert carved.files["data.bin"] is tree.files["data.bin"]
    assert carved.executable == tree.executable


@pytest.mark.parametrize("tier", ["stub", "removal"])
def test_a_function_that_is_not_there_is_refused(tier: str) -> None:
    with pytest.raises(ValueError, match="no such function"):
        delete_functions(SourceTree({"m.py": PLAIN}), [Function("m.py", 3, "f", 3, 4, 5)], tier)  # type: ignore[arg-type]
