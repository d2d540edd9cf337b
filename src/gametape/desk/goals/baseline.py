"""What the success command said of the workspace before anybody touched it, kept for the life of a goal."""

from typing import Any

from pydantic import Field

from gametape.core.model import Closed
from gametape.desk.goals.observed import Became


class Baseline(Closed):
    """Every test that the command selects has to pass in the end, but for those that were skipped or excused (xfail)
    here: they may stay so, and may not fail. A strict goal lets none of them stay so."""

    test_paths: list[str]
    import_roots: list[str]
    files: list[list[str]]
    """For each run of pytest in the command, the test files it reads."""
    results: dict[str, Became] = Field(default_factory=dict)
    deselected: list[str] = Field(default_factory=list)
    broken: dict[str, str] = Field(default_factory=dict)
    """Test files that could not be read, and what was said about it."""
    floors: dict[str, int] = Field(default_factory=dict)
    """By test function of such a file: how many tests it must turn out to have."""
    unread_excused: list[str] = Field(default_factory=list)
    """Test functions of such files that their own marks skip or excuse."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """By test file."""
    exit_codes: list[int] = Field(default_factory=list)
    """Of the conditions that are no runs of pytest."""
    usual: list[tuple[str, str]] = Field(default_factory=list)
    """What the tests do to their process by themselves."""
    plan: dict[str, Any] = Field(default_factory=lambda: {"validated": []})
    """Twins of tests that passed, each seen to fail."""

    @property
    def collected(self) -> int:
        return len(self.results) + len(self.deselected)

    def tests(self, *what: Became) -> list[str]:
        return [test for test, result in self.results.items() if result in what]

    def least(self, strict: bool) -> dict[str, int]:
        """How many tests each function must have that could not be read."""
        return {**self.floors, **(dict.fromkeys(self.unread_excused, 1) if strict else {})}

    def excused(self, strict: bool) -> list[str]:
        """Tests that need not pass."""
        return [] if strict else self.tests("skipped", "xfailed")
