"""The reward: from checks and flags to one number.

`layered`    the weighted sum of the layers' scores, minus 0.5 for each `suspect` flag; fresh calls and the floor are in
             the scores (see `progress`)
`pass_rate`  tests passed / tests expected, visible and held-out together, minus 0.5 for each `suspect` flag: a plain
             count, without fresh calls and without the floor
`binary`     1 for a verdict that passed, which needs fresh calls to agree, else 0; it is 0 too where a trivial program
             passes the task

The result is clipped to [-1, 1]; one `proven` flag makes it exactly -1.0, whatever the kind.

A layer that does not apply to a task, or does not run under a profile, leaves its weight out and the others are scaled
to sum to 1: a perfect submission earns 1.0 under every profile. The layers' own scores make sure that an untouched
workspace earns nothing on the smaller layers (see `layers.context`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from gametape.core.errors import BadInput
from gametape.core.verdict import Check, Flag, TestCounts

RewardKind = Literal["layered", "pass_rate", "binary"]

WEIGHTS: Mapping[str, float] = {
    "tests": 0.70,  # does it work; where a task has groups, an equal share for each group present, see below
    "runtime": 0.05,  # does it run without errors and violations
    "architecture": 0.05,  # does the declared structure hold
    "types": 0.05,  # no new type errors
    "lint": 0.05,  # no new findings
    "diff": 0.05,  # as small and as local as the reference's
    "quality": 0.05,  # simple, no dead or repeated code, covered by tests
}

GROUPS = ("tests.unit", "tests.integration", "tests.behavioural")
"""Where any of these is among the checks, they share the weight of `tests` equally, so that a few behavioural tests are
not outvoted by many unit tests; `tests` itself is then shown and not counted. A task may weigh a group by name."""

PER_SUSPECT = 0.5


def reward(
    kind: RewardKind,
    checks: Sequence[Check],
    flags: Sequence[Flag],
    tests: TestCounts,
    weights: Mapping[str, float],
    passed: bool,
) -> float:
    """What a submission is worth.

    `weights` are the task's own, which replace the default of the layers they name; `passed` is the verdict's answer,
    and false on a task that a trivial program passes.
    """
    if any(flag.severity == "proven" for flag in flags):
        return -1.0
    if kind == "binary":
        return 1.0 if passed else 0.0
    if kind == "pass_rate":
        worth = tests.passed / tests.expected if tests.expected else 0.0
    else:
        weight_of = weights_of(checks, weights)
        total = math.fsum(weight_of.values())
        worth = math.fsum(weight_of[check.name] * check.score for check in checks) / total if total else 0.0
    suspects = sum(flag.severity == "suspect" for flag in flags)
    return max(-1.0, min(1.0, worth - PER_SUSPECT * suspects))


def weights_of(checks: Sequence[Check], weights: Mapping[str, float]) -> dict[str, float]:
    """The weight of each check, before they are scaled to sum to 1."""
    known = {*WEIGHTS, *GROUPS}
    if unknown := sorted({*weights, *(check.name for check in checks)} - known):
        raise BadInput(f"no layer of the reward is called {unknown[0]!r}; there are: {', '.join(sorted(known))}")
    table = {**WEIGHTS, **weights}
    present = [check.name for check in checks]
    groups = [name for name in present if name in GROUPS]
    if groups:
        table = {**{name: table["tests"] / len(groups) for name in groups}, **table, "tests": 0.0}
    return {name: table[name] for name in present}
