"""A candidate: a turn that went wrong, what shows it, and what could have been said before it."""

from dataclasses import dataclass

from gametape.core.hint import Source


@dataclass(frozen=True)
class Target:
    """`turn` counts the model's turns from 1, `step` and `noticed` the steps of the record.

    Targets of one `type` break the same rule, wherever that is: it holds no name or value of the instance.
    """

    step: int
    turn: int
    source: Source
    type: str
    hint: str
    evidence: str
    noticed: int
    span: tuple[int, int] | None = None
    """The completion tokens of the step that make up the action; None where no ids were recorded."""
