"""Targets that a file claims to hold are read with as much care as the rest of it."""

import asyncio
from dataclasses import replace

import pytest

from gametape.coach.coach import Coach
from gametape.coach.hint_store import hints_with_turns, rescore_hints, stored_hints_of, with_stored_hints
from gametape.coach.statistics import HintStatistics
from gametape.core.errors import BadInput
from gametape.core.trajectory import ATIF_VERSION, Trajectory
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.world import World

from .obedient import obedient
from .test_gates import annotate, run_rollout

WORLD = World(WorldSpec(seed=3, load_bearing=1, horizon=6))


@pytest.fixture
def stored_trajectory():
    model = obedient(base=0.0)
    played = run_rollout(WORLD, model)
    agent = {"name": "gametape", "version": "1"}
    trajectory = Trajectory.model_validate({"schema_version": ATIF_VERSION, "agent": agent, "steps": []})
    trajectory = trajectory.model_copy(update={"steps": list(played.steps)})
    return with_stored_hints(trajectory, annotate(Coach(), played, model))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda _own: 5, "extra.gametape.targets: expected a list"),
        (lambda own: own[0], "extra.gametape.targets: expected a list"),
        (lambda own: [*own, {"foo": 1}], r"extra.gametape.targets\[1\]: "),
        (lambda own: [own[0] | {"text": "two\nlines"}], r"targets\[0\]: text: expected one line of text"),
        (lambda own: [own[0] | {"span": [0, 100_000]}], "ends at 100000; the turn has"),
    ],
)
def test_what_is_no_target_is_said_in_one_line(stored_trajectory, change, says):
    stored_trajectory.extra["gametape"]["targets"] = change(stored_trajectory.extra["gametape"]["targets"])
    with pytest.raises(BadInput, match=says) as raised:
        hints_with_turns(stored_trajectory.steps, stored_hints_of(stored_trajectory))
    assert len(str(raised.value).splitlines()) == 1


def test_a_hint_that_the_model_has_no_room_for_is_refused_unread(stored_trajectory):
    (stored_hint,) = hints_with_turns(stored_trajectory.steps, stored_hints_of(stored_trajectory))
    statistics = HintStatistics()
    small = replace(obedient(base=0.0), window=len(stored_hint.turn.prompt_ids) + stored_hint.hint.span[1])
    (again,) = asyncio.run(rescore_hints([stored_hint], small, statistics))
    assert (again.hint.used, again.hint.kl, again.hint.gates.g0) == (False, None, None)
    assert "no room" in again.hint.refused
    assert not statistics.types
