"""Carving in the removal tier: functions go whole, and what remains can be imported."""

import ast

import pytest

from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.functions import functions_in
from gametape.tasks.mining.removal.deletion import DeletionResult, delete_functions


def _removed(files: dict[str, str], *names: str) -> DeletionResult:
    tree = SourceTree({path: text.encode() for path, text in files.items()})
    every = [one for path, text in files.items() for one in functions_in(path, text)]
    chosen = [one for one in every if one.qualname in names]
    assert {one.qualname for one in chosen} == set(names)
    carved = delete_functions(tree, chosen, "removal")
    for path in files:
        ast.parse(carved.tree.files[path])
    assert carved.removed | carved.stubbed == set(chosen)
    return carved


def _alone(text: str, *names: str) -> str:
    carved = _removed({"m.py": text}, *names)
    assert not carved.stubbed
    return carved.tree.text("m.py")


F = "def f():\n    return 1\n"


def test_a_function_goes_with_decorators_and_comments() -> None:
    text = f"import a\n\n# far\n\n# near\n@cached(\n    1)\n{F}    # below\n\n\ndef g():\n    return 2\n"
    assert _alone(text, "f") == "import a\n\n# far\n\n\ndef g():\n    return 2\n"


def test_the_comments_at_the_top_of_a_file_are_the_files() -> None:
    assert _alone(f"#!/usr/bin/python\n# -*- coding: latin-1 -*-\n{F}\nx = 1\n", "f") == (
        "#!/usr/bin/python\n# -*- coding: latin-1 -*-\nx = 1\n"
    )


def test_no_gap_is_left_at_the_end_of_a_file() -> None:
    text = f"x = 1\n\n\n{F}\n\ndef g():\n    return 2\n\n"
    assert _alone(text, "f", "g") == "x = 1\n"
    assert _alone(text, "g") == f"x = 1\n\n\n{F}"
    assert _alone(text, "f") == "x = 1\n\n\ndef g():\n    return 2\n\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("class A:\n    def f(self):\n        return 1\n\n\nx = 1\n", "class A:\n    pass\n\n\nx = 1\n"),
        ("class A:\n    '''Says.'''\n\n    def f(self):\n        return 1\n", "class A:\n    '''Says.'''\n"),
        (
            "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n",
            "class A:\n    def g(self):\n        return 2\n",
        ),
        ("if a:\n    def f():\n        return 1\nelse:\n    b()\n", "if a:\n    pass\nelse:\n    b()\n"),
    ],
)
def test_a_block_never_stays_empty(before: str, after: str) -> None:
    assert _alone(before, *(["A.f"] if before.startswith("class") else ["f"])) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("__all__ = ['f', 'g']\n", "__all__ = ['g']\n"),
        ("__all__ = ['g', 'f']\n", "__all__ = ['g']\n"),
        ("__all__ = ['f']\n", "__all__ = []\n"),
        ("__all__ = ('f', 'g')\n", "__all__ = ('g',)\n"),
        ("__all__ = ('g', 'f')\n", "__all__ = ('g',)\n"),
        ("__all__ = ('f',)\n", "__all__ = ()\n"),
        ("__all__ = 'g', 'f'\n", "__all__ = 'g',\n"),
        ("__all__ = [\n    'f',  # one\n    # of g\n    'g',\n]\n", "__all__ = [\n    # of g\n    'g',\n]\n"),
        ("__all__ = [\n    'g',\n    'f'\n]\n", "__all__ = [\n    'g',\n]\n"),
        ("__all__ = ['g',\n           'f']\n", "__all__ = ['g']\n"),
        ("__all__ = ['g']\n__all__ += ['f', 'h']\n", "__all__ = ['g']\n__all__ += ['h']\n"),
        ("__all__ = other.__all__ + ['f']\n", "__all__ = other.__all__ + []\n"),
        ("__all__: list[str] = ['g', 'f', 'h']\n", "__all__: list[str] = ['g', 'h']\n"),
        ("__all__ = []\n__all__.extend(['f', 'g'])\n", "__all__ = []\n__all__.extend(['g'])\n"),
    ],
)
def test_entries_of_all_go(before: str, after: str) -> None:
    assert _alone(f"{before}x = 1\n\n\n{F}", "f") == f"{after}x = 1\n"


def test_an_entry_that_cannot_be_cut_keeps_the_function() -> None:
    carved = _removed({"m.py": f"__all__ = 'f g'.split()\n\n\n{F}"}, "f")
    assert carved.stubbed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from .m import f\n", ""),
        ("from .m import f, g\n", "from .m import g\n"),
        ("from .m import g, f  # both\n", "from .m import g  # both\n"),
        ("from .m import (\n    f,\n    g,\n)\n", "from .m import (\n    g,\n)\n"),
        ("from .m import (g,\n               f)\n", "from .m import (g)\n"),
        ("from .m import g, \\\n    f\n", "from .m import g\n"),
        ("from .m import f as h, g\n", "from .m import g\n"),
        ("from p.m import f\n", ""),
        ("from .m import f; y = 2\n", "pass; y = 2\n"),
        ("def k():\n    from .m import f\n    return f()\n", "def k():\n    return f()\n"),
        ("if TYPE_CHECKING:\n    from .m import f\n", "if TYPE_CHECKING:\n    pass\n"),
        ("from .other import f\n", "from .other import f\n"),
        ("from m import f\n", "from m import f\n"),
    ],
)
def test_imports_of_the_name_go(before: str, after: str) -> None:
    files = {"src/p/__init__.py": "", "src/p/m.py": f"g = 1\n\n\n{F}", "src/p/user.py": f"{before}x = 1\n"}
    carved = _removed(files, "f")
    assert not carved.stubbed
    assert carved.tree.text("src/p/user.py") == f"{after}x = 1\n"


def test_a_name_is_followed_through_packages() -> None:
    files = {
        "p/__init__.py": "from .m import f as api, g\n\n__all__ = ['api', 'g']\n",
        "p/m.py": f"g = 1\n\n\n{F}",
        "q.py": "from p import api, g\n\n\ndef h():\n    return api()\n",
        "tests/test_m.py": "from p import api\n",
    }
    carved = _removed(files, "f")
    assert carved.tree.text("p/__init__.py") == "from .m import g\n\n__all__ = ['g']\n"
    assert carved.tree.text("q.py") == "from p import g\n\n\ndef h():\n    return api()\n"
    assert carved.tree.text("tests/test_m.py") == files["tests/test_m.py"]


@pytest.mark.parametrize(
    "use",
    [
        "g = f\n",
        "@f\ndef g(): pass\n",
        "def g(x=f): pass\n",
        "def g(x: f): pass\n",
        "class A(f): pass\n",
        "class A:\n    x = f()\n",
        "f = wrap(f)\n",
        "def g(x):\n    return {'f': f, 'g': g}[x]()\n",
        "try:\n    from fast import f\nexcept ImportError:\n    pass\n",
    ],
)
def test_what_is_needed_at_import_is_stubbed(use: str) -> None:
    carved = _removed({"m.py": f"{F}\n\n{use}"}, "f")
    assert carved.stubbed
    assert carved.tree.text("m.py") == f"def f():\n    raise NotImplementedError\n\n\n{use}"


@pytest.mark.parametrize(
    "use",
    [
        "from m import f\ng = f\n",
        "from m import *\ng = f\n",
        "import m\ng = m.f\n",
        "import m as n\n@n.f\ndef g(): pass\n",
    ],
)
def test_also_in_another_module(use: str) -> None:
    assert _removed({"m.py": F, "user.py": use}, "f").stubbed


def test_also_in_a_conftest() -> None:
    assert _removed({"m.py": F, "tests/conftest.py": "from m import f\n"}, "f").stubbed


@pytest.mark.parametrize("use", ["def g():\n    return f()\n", "g = lambda: f()\n", "import re\nx = re.f('a')\n"])
def test_what_waits_for_a_call_does_not_matter(use: str) -> None:
    carved = _removed({"m.py": f"{F}\n\n{use}"}, "f")
    assert carved.tree.text("m.py") == use


def test_a_use_in_the_signature_of_what_goes_too_does_not_matter() -> None:
    text = f"{F}\n\n@f\ndef g(x=f):\n    return x\n\n\nx = 1\n"
    assert _alone(text, "f", "g") == "x = 1\n"
    held = _removed({"m.py": f"{text}y = g\n"}, "f", "g")
    assert len(held.stubbed) == 2, "g stays for y, and f for g"


PROPERTY = """\
class A:
    @property
    def x(self):
        return 1

    @x.setter
    def x(self, value):
        self.y = value

    z = 1
"""


def test_a_property_goes_whole_or_not_at_all() -> None:
    assert _alone(PROPERTY, "A.x") == "class A:\n    z = 1\n"
    getter, setter = functions_in("m.py", PROPERTY)
    for half in (getter, setter):
        assert delete_functions(SourceTree({"m.py": PROPERTY.encode()}), [half], "removal").stubbed == {half}


def test_overloads_go_along() -> None:
    text = f"@overload\ndef f(a: int) -> int: ...\n@overload\ndef f(a: str) -> str: ...\n{F}\nx = 1\n"
    assert _alone(text, "f") == "x = 1\n"


@pytest.mark.parametrize(
    "text",
    [
        "class A(AbstractSet[int]):\n    def __len__(self):\n        return 1\n",
        "class A(Mapping):\n    def __len__(self):\n        return 1\n",
        "class B(ABC):\n    @abstractmethod\n    def f(self): ...\nclass A(B):\n    def f(self):\n        return 1\n",
        "@total_ordering\nclass A:\n    def __lt__(self, other):\n        return True\n",
        "class A:\n    def f(self):\n        return 1\n    g = f\n",
        "class A:\n    def f(self):\n        return 1\nf = A.f\n",
    ],
)
def test_methods_a_class_cannot_do_without_are_stubbed(text: str) -> None:
    name = next(one.qualname for one in functions_in("m.py", text))
    assert _removed({"m.py": text}, name).stubbed


IMPORTS = """\
from __future__ import annotations
import effects
import os.path
import json, re
import kept
from typing import Any, Iterator
try:
    import fast
except ImportError:
    fast = None


def f() -> Iterator[int]:
    from .x import y
    return json.loads(re, fast, os.path, kept)


def g(x: "Any"):
    return kept
"""


def test_imports_that_nothing_uses_any_more_go() -> None:
    carved = _alone(IMPORTS, "f")
    assert carved.startswith("from __future__ import annotations\nimport effects\nimport os.path\nimport kept\n")
    assert "from typing import Any\ntry:\n    import fast\n" in carved


def test_imports_for_others_stay() -> None:
    text = "import json\nimport re as re\n\n\ndef f():\n    return json, re\n\n\nx = 1\n"
    assert _alone(text, "f") == "import re as re\n\n\nx = 1\n"
    for other in ("from m import json\n", "from m import *\n"):
        assert "import json" in _removed({"m.py": text, "tests/test_m.py": other}, "f").tree.text("m.py")


def test_a_stub_beside_a_removed_function_keeps_its_own_text() -> None:
    files = {
        "m.py": "def f():\n    from n import g\n    return g()\n\n\nx = f\n",
        "n.py": "def g():\n    return 1\n\n\ny = 1\n",
    }
    carved = _removed(files, "f", "g")
    assert carved.tree.text("m.py") == "def f():\n    raise NotImplementedError\n\n\nx = f\n"
    assert carved.tree.text("n.py") == "y = 1\n"
