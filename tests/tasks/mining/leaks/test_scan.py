import io
import json
import tarfile
import textwrap
import zipfile

import pytest

from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.functions import functions_in
from gametape.tasks.mining.leaks.scan import CodeLeak, find_leaks

SOURCE = '''\
import math


def spread(values, width=1.0):
    """How far values lie apart."""
    total = sum(values) * width
    mean = total / max(len(values), 1)
    squares = [(value - mean) ** 2 for value in values]
    if not squares:
        raise ValueError(f"nothing to measure in {values!r}")
    return math.sqrt(sum(squares) / len(squares)) * width


class Box:
    def first(self):
        return self._items[0]
'''
BODY = textwrap.dedent("\n".join(SOURCE.splitlines()[5:11]))
STUBBED = SOURCE.replace(textwrap.indent(BODY, "    "), "    raise NotImplementedError")
RENAMED = '''\
import math


class Other:
    def deviation(self, numbers: list[float], scale: float) -> float:
        """Another name, other variables."""
        whole: float = sum(numbers) * scale
        middle = whole / max(len(numbers), 1)
        parts = [(n - middle) ** 2 for n in numbers]
        if not parts:
            raise ValueError(f"nothing to measure in {numbers!r}")
        return math.sqrt(sum(parts) / len(parts)) * scale
'''


def scan(files: dict[str, str | bytes], name: str = "spread") -> list[CodeLeak]:
    deleted = {one: SOURCE for one in functions_in("pkg/a.py", SOURCE) if one.qualname == name}
    given = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    return find_leaks(deleted, SourceTree({"pkg/a.py": STUBBED.encode(), **given}))


def test_a_carved_tree_is_clean():
    assert STUBBED != SOURCE
    assert scan({"README.md": "Call `spread([1, 2])`.\n\n    >>> spread([1, 2])\n    0.5\n"}) == []


def test_a_body_that_was_not_taken_out_is_found():
    (leak,) = scan({"pkg/a.py": SOURCE})
    assert (leak.where, leak.line, leak.kind, leak.copy) == ("pkg/a.py", 4, "copy", None)


def test_a_copy_with_other_variables_is_found_and_named():
    (leak,) = scan({"pkg/b.py": RENAMED})
    assert (leak.where, leak.line, leak.kind) == ("pkg/b.py", 5, "copy")
    assert leak.copy
    assert leak.copy.name == "pkg/b.py::Other.deviation"


def test_a_copy_in_a_carved_file_is_named_as_the_original_has_it():
    source = SOURCE + RENAMED.partition("\n")[2]
    carved = source.replace(BODY_LINES, "    raise NotImplementedError")
    (function,) = (one for one in functions_in("a.py", source) if one.qualname == "spread")
    (leak,) = find_leaks({function: source}, SourceTree({"a.py": carved.encode()}))
    assert leak.copy in functions_in("a.py", source)
    assert leak.copy not in functions_in("a.py", carved)


BODY_LINES = textwrap.indent(BODY, "    ")


def test_other_constants_and_other_calls_are_another_body():
    assert scan({"pkg/b.py": RENAMED.replace("** 2", "** 3").replace("sqrt", "exp")}) == []


def test_small_bodies_identify_nothing():
    assert scan({"pkg/b.py": "class A:\n    def head(self):\n        return self._items[0]\n"}, "Box.first") == []


def test_a_nested_copy_is_found_but_nothing_can_be_deleted_for_it():
    nested = "def outer():\n" + textwrap.indent(RENAMED.partition("class Other:\n")[2], "") + "    return deviation\n"
    (leak,) = scan({"pkg/b.py": nested})
    assert (leak.kind, leak.copy) == ("copy", None)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("README.md", f"# How\n\n```python\n{BODY}\n```\n"),
        ("docs/how.rst", f"It does this::\n\n{textwrap.indent(BODY, '    ')}\n\nand no more.\n"),
        ("notes.txt", textwrap.indent(SOURCE, "  ")),
        ("pkg/a.pyi", SOURCE),
        ("fix.diff", "".join(f"+{line}\n" for line in SOURCE.splitlines())),
        ("book.ipynb", json.dumps({"cells": [{"cell_type": "code", "source": SOURCE.splitlines(keepends=True)}]})),
        ("page.html", f"<pre>{BODY.replace('values', '<b>values</b>')}</pre>"),
        ("pkg/old.py", "".join(f"# {line}\n" for line in SOURCE.splitlines())),
        ("pkg/text.py", f"OLD = '''\n{BODY}\n'''\n"),
        ("pkg/module.py", f"values, width = [1], 2\n{BODY.replace('return', 'answer =')}\n"),
        (
            "pkg/doctest.py",
            '"""Try it.\n\n' + "".join(f">>> {line}\n" for line in BODY.splitlines()[:3]) + BODY[-58:] + '\n"""\n',
        ),
    ],
)
def test_a_body_is_found_wherever_it_can_be_read(path: str, text: str):
    leaks = scan({path: text})
    assert {leak.where for leak in leaks} == {path}


def test_long_parts_are_found_in_other_functions():
    steps = [f"value = compute_{n}(value, table[{n}], mode='m{n}')" for n in range(9)]
    source = "def run(value, table):\n" + "".join(f"    {step}\n" for step in steps) + "    return value\n"
    part = "def other(v, t):\n    print(v)\n" + "".join(f"    {step}\n" for step in steps[2:8]) + "    return None\n"
    short = "def other(v, t):\n    print(v)\n" + "".join(f"    {step}\n" for step in steps[2:6]) + "    return None\n"
    (function,) = functions_in("a.py", source)
    assert [leak.kind for leak in find_leaks({function: source}, SourceTree({"b.py": part.encode()}))] == ["part"]
    assert find_leaks({function: source}, SourceTree({"b.py": short.encode()})) == []


def test_archives_are_looked_into():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("pkg/a.py", SOURCE)
    rolled = io.BytesIO()
    with tarfile.open(fileobj=rolled, mode="w:gz") as tar:
        entry = tarfile.TarInfo("x/a.py")
        entry.size = len(SOURCE)
        tar.addfile(entry, io.BytesIO(SOURCE.encode()))
    leaks = scan({"old.whl": packed.getvalue(), "old.tar.gz": rolled.getvalue(), "broken.zip": b"PK\3\4no"})
    assert [leak.where for leak in leaks] == ["old.tar.gz!x/a.py", "old.whl!pkg/a.py"]


def test_files_that_cannot_be_parsed_are_read_as_text():
    assert [leak.kind for leak in scan({"pkg/bad.py": SOURCE + "\ndef broken(:\n"})] == ["text"]
    assert (
        scan({"pkg/bad.py": "\ndef broken(:\n", "data.bin": b"\0\1" + SOURCE.encode(), "latin.txt": b"\xff\xfe"}) == []
    )


def test_texts_that_reach_over_definitions_do_not_hide_what_follows():
    odd = 'A = """\nclass B:\n    def c(self):\n"""\n\n' + RENAMED.replace("import math", "")
    (leak,) = scan({"pkg/odd.py": odd})
    assert odd.splitlines()[leak.line - 1].strip().startswith("def deviation")


def test_very_deep_and_very_long_code_is_no_trouble():
    deep = "def deep(x):\n    return " + " + ".join(["x"] * 3000) + "\n"
    chain = "def chain(x):\n    if x == 0:\n        return 0\n"
    chain += "".join(f"    elif x == {n}:\n        return {n}\n" for n in range(1, 900))
    (function,) = functions_in("a.py", chain)
    files = {"b.py": chain.encode(), "deep.py": deep.encode(), "long.txt": b"f(" * 500_000}
    assert [leak.where for leak in find_leaks({function: chain}, SourceTree(files))] == ["b.py"]
