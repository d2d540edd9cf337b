import ast

import pytest

from gametape.core.task import Architecture, ImportContract
from gametape.core.verdict import Check
from gametape.verify.layers import architecture
from gametape.verify.layers.imports import module_imports, module_name
from gametape.verify.layers.structure import violations
from tests.verify.layers.toy_task import Files, scoring_context, toy_task, tree

START = {
    "src/app/__init__.py": "",
    "src/app/ui/__init__.py": "",
    "src/app/ui/view.py": "from app.core import model\n",
    "src/app/core/__init__.py": "",
    "src/app/core/model.py": "def load(path, *, strict=False):\n    raise NotImplementedError\n",
}
SOLVED = "def load(path, *, strict=False):\n    return path\n"


def score(rules: Architecture, written: Files, start: Files = START) -> Check:
    task = toy_task(start, {"src/app/core/model.py": SOLVED}, architecture=rules)
    check = architecture.score(scoring_context(task, {"src/app/core/model.py": SOLVED + "\n\nX = 1\n", **written}))
    assert check is not None
    return check


def targets(text: str, module: str = "a.b.c", is_package: bool = False) -> set[str]:
    return {target for one in module_imports(ast.parse(text), module, is_package) for target in one.targets}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import x.y as z, w", {"x.y", "w"}),
        ("from x import y", {"x", "x.y"}),
        ("from x import *", {"x"}),
        ("from . import y", {"a.b", "a.b.y"}),
        ("from .. import y", {"a", "a.y"}),
        ("from ..x import y", {"a.x", "a.x.y"}),
        ("from ....x import y", set()),
        ("def f():\n    import x", {"x"}),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import x", {"x", "typing", "typing.TYPE_CHECKING"}),
        ("try:\n    import x\nexcept ImportError:\n    x = None", {"x"}),
        ("import importlib\nimportlib.import_module('x.y')", {"importlib", "x.y"}),
        ("import importlib as i\ni.import_module(name='x')", {"importlib", "x"}),
        (
            "from importlib import import_module as m\nm('.y', __package__)",
            {"importlib", "importlib.import_module", "a.b.y"},
        ),
        ("from importlib import import_module as m\nm('.y', 'p.q')", {"importlib", "importlib.import_module", "p.q.y"}),
        ("__import__('x')", {"x"}),
        ("__import__(name)", set()),
    ],
)
def test_imports_are_seen_wherever_they_stand(text: str, found: set[str]) -> None:
    assert targets(text) == found


def test_relative_imports_of_a_package_start_at_itself() -> None:
    assert targets("from . import y", "a.b", is_package=True) == {"a.b", "a.b.y"}


def test_modules_are_named_from_the_closest_root() -> None:
    assert module_name("src/p/m.py", ["src"]) == "p.m"
    assert module_name("src/p/__init__.py", ["src", "."]) == "p"
    assert module_name("p/m.py", ["."]) == "p.m"
    assert module_name("lib/p/m.py", ["src"]) is None
    assert module_name("src/p/data.txt", ["src"]) is None


def test_a_task_without_rules_has_no_such_layer() -> None:
    assert architecture.score(scoring_context(toy_task(START), {})) is None
    assert architecture.score(scoring_context(toy_task(START, architecture=Architecture()), {})) is None


def test_contracts() -> None:
    rules = Architecture(contracts=[ImportContract(importer="app.core", forbidden=["app.ui", "requests"])])
    assert score(rules, {}).score == 1.0
    check = score(rules, {"src/app/core/bad.py": "\ndef f():\n    from ..ui import view\n    return view\n"})
    assert check.score == 0.5
    assert "src/app/core/bad.py:3" in check.detail
    assert score(rules, {"src/app/core/bad.py": "import requests.adapters\n"}).score == 0.5
    assert score(rules, {"src/app/core/good.py": "import requests_mock\nfrom app import uix\n"}).score == 1.0
    assert score(rules, {"src/app/ui/good.py": "import requests\n"}).score == 1.0


def test_layers() -> None:
    rules = Architecture(layers=["app.ui", "app.core"])
    assert score(rules, {}).score == 1.0
    assert score(rules, {"src/app/core/bad.py": "import app.ui.view\n"}).score == 0.5
    assert score(rules, {"src/app/ui/fine.py": "from . import view\nfrom app.core import model\n"}).score == 1.0


def test_forbidden_modules() -> None:
    rules = Architecture(forbidden_modules=["pickle", "os.path"])
    check = score(rules, {"src/app/bad.py": "import pickle\nimport os\nfrom os import path\n"})
    assert check.score == pytest.approx(1 / 3)
    assert "src/app/bad.py:1" in check.detail
    assert "src/app/bad.py:3" in check.detail


def test_what_the_reference_breaks_is_held_against_nobody() -> None:
    rules = Architecture(contracts=[ImportContract(importer="app.ui", forbidden=["app.core"])])
    assert score(rules, {"src/app/ui/view.py": "# moved\nfrom app.core import model\n"}).score == 1.0
    assert score(rules, {"src/app/ui/other.py": "from app.core import model\n"}).score == 0.5


API = {
    "app.core.model": [
        *("load(path, *, strict=False)", "Store", "Store(size=1)", "Store.get(key)", "Store.put(self, key, value)"),
        *("Store.of(items)", "LIMIT", "Store.inherited(x)", "Plain(a)", "shared", "shared(a)", "made(a, b)"),
    ]
}
OFFER = """
from app.core.base import shared
from app.core.base import *
from dataclasses import dataclass
LIMIT: int = 3
class Base:
    def inherited(self, x): ...
class Store(Base):
    def __init__(self, size: int = 2): ...
    def get(self, key: str) -> int: ...
    def put(self, key, value): ...
    @classmethod
    def of(cls, items): ...
@dataclass
class Plain:
    a: int
def wrap(f): return f
made = wrap(lambda *args: args)
if LIMIT:
    def load(path: str, *, strict: bool = False) -> str: return path
else:
    load = None
"""
BASE = {"src/app/core/base.py": "def shared(a): ...\ndef extra(): ...\n"}


def api(text: str) -> Check:
    task = toy_task({**START, **BASE}, {"src/app/core/model.py": OFFER}, architecture=Architecture(public_api=API))
    check = architecture.score(scoring_context(task, {"src/app/core/model.py": text}))
    assert check is not None
    return check


def test_the_public_api_is_met_in_many_ways() -> None:
    assert api(OFFER.replace("size: int = 2", "size=None")).detail == "everything holds"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("load(path: str, *, strict: bool", "load(path: str, strict: bool"),
        ("load(path: str, *, strict: bool = False)", "load(path: str, *, strict: bool)"),
        ("def get(self, key: str)", "def get(self, name: str)"),
        ("def put(self, key, value)", "def put(self, key, value, more)"),
        ("def get(self", "def fetch(self"),
        ("LIMIT: int = 3", "BOUND: int = 3"),
        ("LIMIT: int = 3", "LIMIT, shared = 3, 4\ndef shared(b): ..."),
        ("size: int = 2", "size: int"),
    ],
)
def test_a_changed_api_is_seen(old: str, new: str) -> None:
    changed = OFFER.replace(old, new).replace("if LIMIT", "if True")
    if "shared(b)" in new:
        changed = changed.replace("from app.core.base import shared\nfrom app.core.base import *\n", "")
    check = api(changed)
    assert check.score < 1.0
    assert "src/app/core/model.py:" in check.detail


def test_a_module_that_is_gone_or_unreadable_offers_nothing() -> None:
    assert "cannot be parsed" in api("def load(:\n").detail
    task = toy_task({**START, **BASE}, {"src/app/core/model.py": OFFER}, architecture=Architecture(public_api=API))
    check = architecture.score(scoring_context(task, {"src/app/ui/x.py": "x = 1\n"}, removed=["src/app/core/model.py"]))
    assert check is not None
    assert "is not there" in check.detail


def test_imports_and_bases_in_a_circle_end() -> None:
    rules = Architecture(public_api={"app.core.model": ["load", "A.method()"]})
    circle = {
        "src/app/core/base.py": "from app.core.model import *\n" * 30,
        "src/app/core/model.py": "from app.core.base import *\n" * 30
        + "class A(B, B, C): ...\nclass B(A, A, C): ...\nC = A\n",
    }
    check = score(rules, circle)
    assert "must offer load" in check.detail


def test_what_builtin_bases_bring_is_offered() -> None:
    rules = Architecture(public_api={"m": ["Store.get(key)", "Store.__eq__", "Store.fetch"]})
    task = toy_task({}, architecture=rules).task
    found = violations(task, rules, tree({"src/m.py": "class Store(dict): ...\n"}))
    assert [str(one) for one in found] == ["src/m.py:1: m must offer Store.fetch"]


def test_defaults_that_are_hard_to_write_out_do_not_matter() -> None:
    rules = Architecture(public_api={"app.core.model": ["load(path)"]})
    deep = "-" * 80 + "1" + "+1" * 900
    check = score(rules, {"src/app/core/model.py": f"def load(path, depth={deep}, n=0x{'f' * 9000}): ...\n"})
    assert "load(path, depth=..., n=...)" in check.detail
