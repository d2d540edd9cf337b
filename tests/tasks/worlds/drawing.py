"""Worlds of every kind, for properties that hold for all of them."""

import asyncio

from hypothesis import strategies as st

from gametape.core.environment import EpisodeScore
from gametape.tasks.worlds.experts import Expert, script_episode
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.state import WorldReply
from gametape.tasks.worlds.workspace import WorldWorkspace
from gametape.tasks.worlds.world import World

specs = st.builds(
    WorldSpec,
    seed=st.integers(0, 2**48),
    family=st.sampled_from([None, "files", "database", "build"]),
    horizon=st.integers(4, 24),
    load_bearing=st.integers(0, 4),
    error_delay=st.integers(0, 6),
    hints=st.sampled_from(["shared", "instance"]),
    split=st.sampled_from(["all", "train", "held_out"]),
    retry=st.booleans(),
)


async def _acted(world: World, expert: Expert, seed: int) -> tuple[WorldWorkspace, list[WorldReply], EpisodeScore]:
    place = await world.reset()
    assert isinstance(place, WorldWorkspace)
    await place.snapshot()
    told = []
    for act in script_episode(world, expert, seed):
        told.append(place.act(act.action))
        await place.snapshot()
    return place, told, await world.score(place)


def acted(world: World, expert: Expert, seed: int = 0) -> tuple[WorldWorkspace, list[WorldReply], EpisodeScore]:
    """What comes of an expert's episode: the place as it was left, every answer, and the judgement."""
    return asyncio.run(_acted(world, expert, seed))
