import pytest

from gametape.verify.layers.tree_change import compare_trees
from gametape.verify.static_analysis.python_source import (
    MOST_BYTES,
    code_lines,
    decode_source,
    functions,
    parse_source,
)
from tests.patience import effort
from tests.verify.layers.toy_task import tree

ODD = {
    "syntax error": b"def f(:\n",
    "null byte": b"x = 1\0\n",
    "not utf-8": b"x = '\xe9'\n",
    "unknown encoding": b"# coding: klingon\nx = 1\n",
    "punycode": b"# coding: punycode\n" + b"a" * 300_000,
    "utf-7": b"# coding: utf-7\nx = 1\n",
    "utf-16": "x = 1\n".encode("utf-16"),
    "deep unary": b"x = " + b"-" * 100_000 + b"1\n",
    "deep sum": b"x = " + b"+".join([b"1"] * 100_000) + b"\n",
    "deep brackets": b"x = " + b"(" * 10_000 + b")" * 10_000 + b"\n",
    "deep attributes": b"x = y" + b".a" * 100_000 + b"\n",
    "deep blocks": b"".join(b" " * depth + b"if x:\n" for depth in range(500)),
    "deep lambda": b"x = " + b"lambda: " * 5_000 + b"1\n",
    "too large": b"x = 1\n" * (MOST_BYTES // 6 + 1),
}


@pytest.mark.parametrize("content", ODD.values(), ids=ODD.keys())
def test_odd_sources_are_no_code_and_reading_them_ends(content: bytes) -> None:
    def read() -> None:
        assert parse_source(content) is None
        assert isinstance(code_lines(content), frozenset)
        assert compare_trees(tree({"a.py": b"x = 1\n"}), tree({"a.py": content})).files["a.py"].removed <= 1

    assert effort(read) < 250


def test_what_python_decodes_is_decoded() -> None:
    assert decode_source(b"# coding: latin-1\nx = '\xe9'\n") == "# coding: latin-1\nx = 'é'\n"
    assert decode_source(b"\xef\xbb\xbfx = 1\r\ny = 2\r") == "x = 1\ny = 2\n"
    assert parse_source(b"") is not None
    assert parse_source("x = '\u2028\x0c'\ny = 2\n".encode()) is not None


def test_code_lines_leave_comments_and_docstrings_out() -> None:
    content = (
        b'"""Doc."""\n# note\n\ndef f(a,\n      b):\n    """Doc\n    more."""\n    return a\n\nclass A:\n    "Doc"\n'
    )
    assert code_lines(content) == {4, 5, 8, 10}


def test_functions_have_dotted_names() -> None:
    module = parse_source(b"class A:\n  def f(self):\n    def g(): pass\nif x:\n  async def h(): pass\n")
    assert module is not None
    assert {name for name, _ in functions(module)} == {"A.f", "A.f.g", "h"}


def test_changes_are_counted_in_lines_of_code() -> None:
    old = tree({"a.py": "x = 1\ny = 2\n", "gone.py": "z = 3\n", "same.py": "s = 1\n"})
    new = tree({"a.py": "# hello\nx = 1\n\ny = 3\n", "new.txt": "# one\n\ntwo\n", "same.py": "s = 1\n"})
    change = compare_trees(old, new)
    assert set(change.files) == {"a.py", "gone.py", "new.txt"}
    assert change.lines("a.py") == {4}
    assert change.files["gone.py"].removed == 1
    assert change.lines("new.txt") == {1, 3}
    assert (change.lines_written, change.size) == (3, 5)


def test_comments_and_docstrings_change_nothing() -> None:
    old = tree({"a.py": "def f():\n    return 1\n"})
    new = tree({"a.py": '# why\ndef f():\n    """Say one."""\n    return 1  # one\n'})
    assert compare_trees(old, tree({"a.py": "# why\n\ndef f():\n    return 1\n"})).size == 0
    assert compare_trees(old, new).size <= 2  # a comment behind code touches its line


def test_files_of_equal_lines_are_compared_in_time() -> None:
    old, new = b"x = 1\n" * 20_000, b"y = 2\n" + b"x = 1\n" * 30_000 + b"y = 3\n"
    written: list[int] = []
    work = lambda: written.append(compare_trees(tree({"a.txt": old}), tree({"a.txt": new})).lines_written)  # noqa: E731
    assert effort(work) < 250
    assert written[0] >= 10_002
