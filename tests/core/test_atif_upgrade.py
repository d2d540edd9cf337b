import json
from typing import Any

from hypothesis import given, settings

from gametape.core.atif_upgrade import upgrade_trajectory
from gametape.core.trajectory import ATIF_VERSION, Trajectory

from .documents import GOLDEN, small, text, trajectories

REF = "subagent_trajectory_ref"


@settings(deadline=None, max_examples=60)
@given(trajectories())
def test_a_current_trajectory_stays_as_it_is(document: dict[str, Any]) -> None:
    assert text(upgrade_trajectory(Trajectory.model_validate(document)).model_dump()) == text(document)


def test_an_old_one_changes_only_its_version_and_what_it_cannot_say() -> None:
    document = json.loads(next(path for path in GOLDEN if "v1.4" in path.name).read_text())
    upgraded = upgrade_trajectory(Trajectory.model_validate(document)).model_dump()
    assert upgraded["schema_version"] == ATIF_VERSION
    moved = document["steps"][1]["observation"]["results"][1]
    moved["extra"] = {"gametape": {"unresolved_refs": moved.pop(REF)}}
    assert text(upgraded) == text(document | {"schema_version": ATIF_VERSION})


def test_references_that_resolve_stay_beside_those_that_do_not() -> None:
    document = small() | {"schema_version": "ATIF-v1.5"}
    result = document["steps"][1]["observation"]["results"][0]
    result[REF] = [{"session_id": "s"}, {"session_id": "t", "trajectory_path": "t.json"}]
    result["extra"] = {"theirs": 1, "gametape": {"other": 2}}
    upgraded = upgrade_trajectory(Trajectory.model_validate(document)).model_dump()
    result = upgraded["steps"][1]["observation"]["results"][0]
    assert result[REF] == [{"session_id": "t", "trajectory_path": "t.json"}]
    assert result["extra"] == {
        "theirs": 1,
        "gametape": {"other": 2, "unresolved_refs": [{"session_id": "s"}]},
    }


def test_subagents_are_upgraded_too() -> None:
    child = small() | {"schema_version": "ATIF-v1.3", "trajectory_id": "s"}
    upgraded = upgrade_trajectory(Trajectory.model_validate(small() | {"subagent_trajectories": [child]}))
    assert upgraded.subagent_trajectories is not None
    assert upgraded.subagent_trajectories[0].schema_version == ATIF_VERSION
