"""A twin as a value: one test function and the edits that contradict it."""

from collections.abc import Sequence
from dataclasses import dataclass

from gametape.syntax.source_text import SourceEdit, apply_edits


@dataclass(frozen=True)
class Twin:
    """One way to contradict one test function. Everything outside the edits stays as it was."""

    function: str
    """`test_a` or `TestC::test_m`: as in a test id, without parameters."""
    kind: str
    case: str | None
    """The one case of a parametrised test that fails; None: all of them fail."""
    edits: tuple[SourceEdit, ...]


def apply_twins(source: str, twins: Sequence[Twin]) -> str:
    """The source with all these twins applied; at most one for each function."""
    if len({twin.function for twin in twins}) != len(twins):
        raise ValueError("more than one twin for a function: apply at most one to each")
    return apply_edits(source, (edit for twin in twins for edit in twin.edits))
