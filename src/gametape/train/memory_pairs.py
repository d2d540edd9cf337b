"""Runs a memory pair: two episodes, of which the second reads a note that the first wrote."""

from collections.abc import Callable
from dataclasses import replace

from gametape.agent.episode import Episode, finish_episode, run_episode
from gametape.agent.recorder import MemoryRecorder
from gametape.agent.rollout import Rollout, RolloutConfig
from gametape.core.protocols import Environment
from gametape.tasks.worlds.memory import MemoryPair, joint_score, read_note


async def run_memory_pair(
    pair: MemoryPair, config_for: Callable[[Environment], RolloutConfig]
) -> tuple[Episode, Episode]:
    """The writer's episode, whose score includes the reader's success, and the reader's episode."""
    writer = pair.writer
    workspace = await writer.reset()
    rollout = await Rollout.begin(
        config_for(writer), workspace, MemoryRecorder(), writer.system_prompt, writer.user_prompt
    )
    first = await finish_episode(writer, rollout)
    reader = pair.reader(await read_note(workspace))
    second = await run_episode(reader, config_for(reader))
    if first.score is None or second.score is None:
        return replace(first, score=None), second
    return replace(first, score=joint_score(first.score, [second.score])), second
