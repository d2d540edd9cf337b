"""The rules of the house: every name means one thing, every module is reached, and ARCHITECTURE.md tells the truth."""

import ast
import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("architecture", _ROOT / "scripts" / "architecture.py")
assert _spec
assert _spec.loader
architecture = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(architecture)

_ENTRY_POINTS = ("gametape", "gametape.cli.main")
_ENGLISH_NOUNS = {"logging", "mining", "packing", "pricing", "recording", "string", "training"}


def test_no_public_class_name_is_used_twice() -> None:
    names = Counter(
        node.name
        for path in architecture.modules().values()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_no_file_is_named_by_a_gerund() -> None:
    stems = {path.stem for path in architecture.modules().values()} | {
        path.parent.name for path in architecture.modules().values()
    }
    assert {stem for stem in stems if stem.endswith("ing")} - _ENGLISH_NOUNS == set()


def test_every_module_is_reached_from_a_verb_or_the_public_api() -> None:
    """Tests do not count. A module may also be named in a string: what runs in another process is started that way."""
    known = architecture.modules()
    stems: dict[str, set[str]] = {}
    for name, path in known.items():
        stems.setdefault(path.stem, set()).add(name)
    reached: set[str] = set()
    waiting = [*_ENTRY_POINTS, *(name for name in known if re.fullmatch(r"gametape\.cli\.\w+", name))]
    while waiting:
        name = waiting.pop()
        if name in reached or name not in known:
            continue
        reached.add(name)
        waiting += [*architecture.imports_of(name, known[name]), name.rpartition(".")[0]]
        waiting += _named(known[name], known, stems)
    assert set(known) - reached == set()


def _named(path: Path, known: dict[str, Path], stems: dict[str, set[str]]) -> set[str]:
    """Modules named in string constants, in full or as a file beside this one or in the package's `in_sandbox`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= set(re.findall(r"gametape(?:\.\w+)+", node.value))
            if re.fullmatch(r"\w+(\.py)?", node.value):
                stem = node.value.removesuffix(".py")
                names |= {name for name in stems.get(stem, ()) if _is_beside(known[name], path)}
    return names


def _is_beside(file: Path, path: Path) -> bool:
    return file.parent == path.parent or file.parent in (path.parent / "in_sandbox", path.parent.parent / "inside")


def test_architecture_has_the_imports_that_are_there() -> None:
    written = (_ROOT / "ARCHITECTURE.md").read_text()
    assert architecture.table_text() in written, "run: python scripts/architecture.py"


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md", *sorted(
    str(path.relative_to(_ROOT)) for path in (_ROOT / "docs").glob("*.md")
)])  # fmt: skip
def test_documents_name_files_that_exist(document: str) -> None:
    """Paths below the package, the tests and the rest of the tree that stand in back quotes."""
    text = (_ROOT / document).read_text()
    roots = (_ROOT, _ROOT / "src" / "gametape")
    packages = "|".join(architecture.rooms())
    tops = f"src|docs|scripts|benchmarks|configs|examples|{packages}|tests/(?:{packages})"
    named = re.findall(rf"`((?:{tops})/[\w./-]+\.(?:py|md|toml|sh|c|jinja|svg|png))`", text)
    assert [name for name in named if not any((root / name).exists() for root in roots)] == []
