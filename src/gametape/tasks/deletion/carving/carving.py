"""Cut functions out of a tree, so that a person could have left it that way."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from gametape.tasks.deletion.carving.python_file import Edit, FunctionNode, Source, read_source
from gametape.tasks.deletion.carving.removal import remove
from gametape.tasks.deletion.carving.stub import stub
from gametape.tasks.deletion.functions import Function
from gametape.verify.tree import Tree

Tier = Literal["stub", "removal"]


@dataclass(frozen=True)
class Carved:
    tree: Tree
    stubbed: frozenset[Function]
    removed: frozenset[Function]


def carve(
    tree: Tree,
    functions: Collection[Function],
    tier: Tier,
    docstrings: bool = True,
    test_paths: Collection[str] = (),
) -> Carved:
    """The tree without these functions.

    `stub` keeps signatures, decorators and, if so wished, docstrings, and puts `raise NotImplementedError` for the
    bodies. Every byte outside the bodies stays, so imports stay that only the bodies used: they name the tools of
    the solution, which is a fair hint where the signature is given too, and whoever solves the task needs them again.

    `removal` takes whole functions, with what speaks of them: entries of `__all__`, imports of their names in files
    that are not tests, and imports nothing else used. A function without which a module could no longer be imported
    is stubbed instead. Raises ValueError for a function that is not there.
    """
    removal = remove(tree, functions, test_paths) if tier == "removal" else None
    removed = removal.removed if removal else frozenset()
    edits: dict[str, list[Edit]] = defaultdict(list, removal.edits if removal else {})
    stubbed = frozenset(functions) - removed
    for function in stubbed:
        source = read_source(tree.files[function.path])
        edit = stub(source, located(source, function), docstrings)
        others = [one for one in edits[function.path] if one.end <= edit.start or edit.end <= one.start]
        edits[function.path] = [*others, edit]
    files = {path: read_source(tree.files[path]).edited(found) for path, found in edits.items()}
    return Carved(Tree({**tree.files, **files}, tree.executable), stubbed, removed)


def located(source: Source, function: Function) -> FunctionNode:
    """The function at its path and line; names say too little, a property and its setter share one."""
    node = source.functions.get(function.line)
    if node is None or node.name != function.qualname.rpartition(".")[2]:
        raise ValueError(f"{function}: there is no such function in this file")
    return node
