"""The surface of a task, derived from its sources."""

from gametape.core.task import SplitSurface, Task, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify.replay.surface import derive_surface


def _surface(
    start: dict[str, str],
    solution: dict[str, str] | None = None,
    roots: tuple[str, ...] = (".",),
    sources: tuple[str, ...] = (".",),
    declared: SplitSurface | None = None,
) -> SplitSurface:
    tree = SourceTree({path: text.encode() for path, text in start.items()})
    changed = SourceTree({path: text.encode() for path, text in (solution or {}).items()})
    task = Task(
        name="t",
        mode="split" if declared else "shared",
        instruction="i",
        source_paths=list(sources),
        import_roots=list(roots),
        tests=TaskTests(fail_to_pass=["tests/test_a.py::test_a"], pass_to_pass=[]),
        split=declared,
    )
    return derive_surface(LoadedTask(task, tree, SourceTree(), changed.overlaid_on(tree)))


def test_packages_src_layouts_single_modules_and_namespace_packages_are_found() -> None:
    surface = _surface(
        {
            "src/shop/__init__.py": "",
            "src/shop/__main__.py": "",
            "src/shop/parts/cart.py": "",
            "src/solo.py": "",
            "src/space/deep/leaf.py": "",
        },
        roots=("src",),
        sources=("src",),
    )
    assert surface.modules == ["shop", "shop.__main__", "shop.parts.cart", "solo", "space.deep.leaf"]


def test_tests_and_names_that_the_test_process_needs_are_left_out() -> None:
    surface = _surface(
        {"tests/test_a.py": "class A: ...", "conftest.py": "", "types.py": "", "a-b.py": "", "shop/types.py": ""}
    )
    assert surface == SplitSurface(modules=["shop.types"])


def test_only_sources_that_an_import_root_leads_to_are_found() -> None:
    surface = _surface(
        {"src/shop.py": "", "lib/other.py": "", "src/data.txt": ""}, roots=("src",), sources=("src", "lib")
    )
    assert surface.modules == ["shop"]


def test_classes_are_found_at_any_nesting_and_under_conditions() -> None:
    source = """
if True:
    class Outer:
        class Inner:
            try:
                class Innermost: ...
            except ValueError: ...
def function():
    class Local: ...
"""
    assert _surface({"shop.py": source}).classes == ["shop:Outer", "shop:Outer.Inner", "shop:Outer.Inner.Innermost"]


def test_start_reference_and_declaration_are_united() -> None:
    surface = _surface(
        {"a.py": "class Old: ...", "b.py": "def broken(:"},
        {"a.py": "class New: ...", "c.py": ""},
        declared=SplitSurface(modules=["z"], classes=["z:Declared"]),
    )
    assert surface == SplitSurface(modules=["a", "b", "c", "z"], classes=["a:New", "a:Old", "z:Declared"])
