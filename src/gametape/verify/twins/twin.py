"""A twin as a value: one test function and the edits that contradict it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gametape.syntax.source_text import SourceEdit, apply_edits


@dataclass(frozen=True)
class ChangedCase:
    """One case of a parametrised test with another expected value."""

    case: str
    """As it stands in the brackets of a test id."""
    renamed: str | None
    """The id of that case while the twin is applied, where it is another one."""
    edits: tuple[SourceEdit, ...]


@dataclass(frozen=True)
class Twin:
    """One way to contradict one test function. Everything outside the edits stays as it was."""

    function: str
    """`test_a` or `TestC::test_m`: as in a test id, without parameters."""
    kind: str
    edits: tuple[SourceEdit, ...]
    cases: tuple[ChangedCase, ...] = ()
    """The cases of a parametrised test that fail, whose edits these are; none: all of them fail."""

    @classmethod
    def of_cases(cls, function: str, kind: str, cases: Sequence[ChangedCase]) -> "Twin":
        edits = sorted((edit for changed in cases for edit in changed.edits), key=lambda edit: (edit.start, edit.end))
        return cls(function, kind, tuple(edits), tuple(cases))

    def only(self, tests: Collection[str]) -> "Twin | None":
        """The twin that changes only the cases that these ids belong to; None if it changes none of them."""
        cases = [changed for changed in self.cases if any(test.endswith(f"[{changed.case}]") for test in tests)]
        return Twin.of_cases(self.function, self.kind, cases) if cases else None

    def id_of(self, test: str) -> str:
        """The id that a test has while this twin is applied."""
        for changed in self.cases:
            suffix = f"[{changed.case}]"
            if changed.renamed is not None and test.endswith(suffix):
                return f"{test.removesuffix(suffix)}[{changed.renamed}]"
        return test


def apply_twins(source: str, twins: Sequence[Twin]) -> str:
    """The source with all these twins applied; at most one for each function."""
    if len({twin.function for twin in twins}) != len(twins):
        raise ValueError("more than one twin for a function: apply at most one to each")
    return apply_edits(source, (edit for twin in twins for edit in twin.edits))
