"""What every backend promises, one function per promise."""

from tests.sandbox.conformance import leftovers, limits, manners, sessions
from tests.sandbox.conformance.bench import BACKENDS, CASES, Bench

__all__ = ["BACKENDS", "CASES", "Bench", "leftovers", "limits", "manners", "sessions"]
