"""A trajectory: the recorded steps of an agent in the Agent Trajectory Interchange Format (ATIF) 1.8.

Files of ATIF 1.0 to 1.7 are read as well, and keep their version until they are converted.
"""

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import model_validator

from gametape.core.atif import Agent, Extra, FinalMetrics
from gametape.core.base_model import ExtensibleModel
from gametape.core.step import Step
from gametape.core.tokens import is_append_only
from gametape.core.validation import Fault, Location, raise_faults

AtifVersion = Literal[
    "ATIF-v1.0",
    "ATIF-v1.1",
    "ATIF-v1.2",
    "ATIF-v1.3",
    "ATIF-v1.4",
    "ATIF-v1.5",
    "ATIF-v1.6",
    "ATIF-v1.7",
    "ATIF-v1.8",
]
ATIF_VERSION: AtifVersion = "ATIF-v1.8"
_REFS_RESOLVE: tuple[AtifVersion, ...] = ("ATIF-v1.7", "ATIF-v1.8")
"""Versions in which a subagent is named by an id or a path; before them its session was enough."""

Outcome = Literal["passed", "failed", "limit", "cancelled", "error"]


class Trajectory(ExtensibleModel):
    """A whole trajectory, with the trajectories of its subagents.

    Steps are numbered from 1 without gaps, and every reference to an embedded trajectory resolves. A trajectory that
    has just begun has no steps yet.
    """

    schema_version: AtifVersion
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: Agent
    steps: list[Step]
    notes: str | None = None
    final_metrics: FinalMetrics | None = None
    continued_trajectory_ref: str | None = None
    subagent_trajectories: "list[Trajectory] | None" = None
    extra: Extra | None = None

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        faults = [*self._embedding_faults()]
        embedded = {sub.trajectory_id for sub in self.subagent_trajectories or []}
        for index, step in enumerate(self.steps):
            faults += step_faults(step, index, self.schema_version, embedded)
        if faults:
            raise_faults(faults)
        return self

    def _embedding_faults(self) -> Iterator[Fault]:
        seen = set()
        for index, sub in enumerate(self.subagent_trajectories or []):
            location: Location = ("subagent_trajectories", index)
            if sub.trajectory_id is None or sub.trajectory_id in seen:
                yield (*location, "trajectory_id"), "an id of its own, for it is embedded"
            if not sub.steps:
                yield (*location, "steps"), "at least one step"
            seen.add(sub.trajectory_id)

    @property
    def attempt_id(self) -> str | None:
        return self._extra_text("attempt_id")

    @property
    def goal_id(self) -> str | None:
        return self._extra_text("goal_id")

    @property
    def outcome(self) -> str | None:
        """How the attempt ended; one of `Outcome` where gametape wrote it."""
        return self._extra_text("outcome")

    def _extra_text(self, key: str) -> str | None:
        value = (self.extra or {}).get(key)
        return value if isinstance(value, str) else None

    @property
    def turns(self) -> int:
        """The number of steps of the agent."""
        return sum(step.source == "agent" for step in self.steps)

    def tokens_exact(self) -> bool | None:
        """Whether every prompt continues the one before it token by token (`is_append_only`), in subagents too."""
        return _all_known(
            [
                is_append_only(step.context_tokens() for step in self.steps),
                *(sub.tokens_exact() for sub in self.subagent_trajectories or []),
            ]
        )

    def mask_ok(self) -> bool | None:
        """Whether every turn with ids has a loss mask, and no copied turn is trained on again.

        None when no turn has a mask, as in a trajectory of another tool.
        """
        return _all_known([self._own_mask_ok(), *(sub.mask_ok() for sub in self.subagent_trajectories or [])])

    def _own_mask_ok(self) -> bool | None:
        sampled = [step for step in self.steps if step.metrics and step.metrics.completion_token_ids]
        masks = [(step, step.gametape_extra.loss_mask) for step in sampled]
        if all(mask is None for _, mask in masks):
            return None
        return all(not any(mask or []) if step.is_copied_context else mask is not None for step, mask in masks)


def step_faults(step: Step, index: int, version: AtifVersion, embedded: set[str | None]) -> Iterator[Fault]:
    """What is wrong with a step in its trajectory: its number, and references that do not resolve."""
    location: Location = ("steps", index)
    if step.step_id != index + 1:
        yield (*location, "step_id"), f"{index + 1}: steps are numbered from 1 without gaps"
    for where, ref in step.subagent_refs():
        if ref.trajectory_id is None and ref.trajectory_path is None:
            if version in _REFS_RESOLVE or ref.session_id is None:
                yield (*location, *where), "a trajectory_id or a trajectory_path"
        elif ref.trajectory_path is None and ref.trajectory_id not in embedded:
            yield (*location, *where, "trajectory_id"), "the id of one of subagent_trajectories"


def _all_known(answers: list[bool | None]) -> bool | None:
    known = [answer for answer in answers if answer is not None]
    return all(known) if known else None
