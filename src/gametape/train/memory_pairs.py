"""Two episodes with a note between them, played one after the other."""

from collections.abc import Callable
from dataclasses import replace

from gametape.agent.playing import Played, finish, play
from gametape.agent.recording import InMemory
from gametape.agent.rollout import Rollout, Setting
from gametape.core.assignment import Assignment
from gametape.tasks.worlds.memory import MemoryPair, joint, note_in


async def play_pair(pair: MemoryPair, setting: Callable[[Assignment], Setting]) -> tuple[Played, Played]:
    """The writer's attempt, judged by the reader's success as well, and the reader's."""
    writer = pair.writer
    environment = await writer.open()
    rollout = await Rollout.begin(setting(writer), environment, InMemory(), writer.system, writer.opening)
    first = await finish(writer, rollout)
    reader = pair.reader(await note_in(environment))
    second = await play(reader, setting(reader))
    if first.judged is None or second.judged is None:
        return replace(first, judged=None), second
    return replace(first, judged=joint(first.judged, [second.judged])), second
