"""Upgrade a trajectory of an earlier ATIF version to the current one without losing anything."""

from typing import Any

from gametape.core.trajectory import ATIF_VERSION, Trajectory


def upgrade_trajectory(trajectory: Trajectory) -> Trajectory:
    """The same trajectory as ATIF 1.8, subagents included.

    Before 1.7 a subagent could be named by its session alone. Now an id or a path is required, and there is none: such
    a reference moves to `extra.gametape.unresolved_refs` of its observation result.
    """
    return Trajectory.model_validate(_upgraded(trajectory.model_dump()))


def _upgraded(document: dict[str, Any]) -> dict[str, Any]:
    document["schema_version"] = ATIF_VERSION
    for step in document["steps"]:
        for result in (step.get("observation") or {}).get("results", []):
            _move_unresolved(result)
    for sub in document.get("subagent_trajectories") or []:
        _upgraded(sub)
    return document


def _move_unresolved(result: dict[str, Any]) -> None:
    refs = result.get("subagent_trajectory_ref") or []
    unresolved = [ref for ref in refs if ref.get("trajectory_id") is None and ref.get("trajectory_path") is None]
    if not unresolved:
        return
    resolved = [ref for ref in refs if ref not in unresolved]
    if resolved:
        result["subagent_trajectory_ref"] = resolved
    else:
        del result["subagent_trajectory_ref"]
    extra = result["extra"] = result.get("extra") or {}
    extra["gametape"] = (extra.get("gametape") or {}) | {"unresolved_refs": unresolved}
