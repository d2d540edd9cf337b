"""The tape of a subagent, whose trajectory lies in that of its caller."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gametape.studio.step_view import mappings, text_of
from gametape.studio.web.catalogue import NotThere
from gametape.studio.web.tape import Tape


@dataclass(frozen=True)
class EmbeddedIndex:
    """The steps of a trajectory that is in memory already, as a `TrajectoryIndex` gives those of a file."""

    header: dict[str, Any]
    running: bool

    def __len__(self) -> int:
        return len(mappings(self.header.get("steps")))

    def steps(self, first: int, stop: int) -> Iterator[dict[str, Any]]:
        yield from mappings(self.header.get("steps"))[first:stop]


def subagent_tape(tape: Tape, name: str) -> Tape:
    """The tape of the subagent of this name. Raises `NotThere`."""
    for header in mappings(tape.header.get("subagent_trajectories")):
        if text_of(header.get("trajectory_id")) == name:
            embedded = Tape(EmbeddedIndex(header, tape.index.running))
            embedded.read_on()
            return embedded
    raise NotThere(f"{name}: there is no subagent of that name in this rollout")
