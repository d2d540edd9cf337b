"""Play programs over some sources in a replay sandbox, and go on where a program ends the process."""

import contextlib
import functools
import time
from collections.abc import Sequence
from typing import Any

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify.fresh.conversation import LOST, PlayedProgram, ProgramConversation
from gametape.verify.fresh.program import Program
from gametape.verify.machine_load import LoadAllowance
from gametape.verify.replay.connection import FrameConnection
from gametape.verify.replay.replayer import Replayer
from gametape.verify.replay.sandbox import ReplaySandboxes, Role
from gametape.verify.verifier_run import VerifierRun, join_runs

_SECONDS, _EACH = 6.0, 0.05
"""How long programs may take together: so long, and so long for each."""
_ALONE_SECONDS = 1.5
"""How long one of them may take by itself: the reference takes a small part of it."""
_MOST_SECONDS = 4 * _SECONDS
"""How long they may take one by one, after a process ended or hung; longer on a busy machine."""
_MOST_LOST = 4
"""Processes that may end or hang before what is left is not played."""
_MOST_SPLITS = 40
"""How often recorded programs are divided before what is lost is left out."""


def play_within(replayer: Replayer, greeting: tuple[Any, ...], programs: Sequence[Program]) -> list[PlayedProgram]:
    """The answers to some programs in a process that is there already, as far as it gave them."""
    played = [PlayedProgram() for _ in programs]
    converse(replayer, greeting, programs, played, _SECONDS + _EACH * len(programs))
    for program, one in zip(programs, played, strict=True):
        one.answers += [LOST] * (len(program.steps) - len(one.answers))
    return played


def converse(
    replayer: Replayer,
    greeting: tuple[Any, ...],
    programs: Sequence[Program],
    played: Sequence[PlayedProgram],
    seconds: float,
    in_waves: bool = False,
) -> bool:
    """Play programs, and add to `played` as answers come. Returns whether that came to its end."""

    def conversation(connection: FrameConnection, deadline: float) -> bool:
        session = ProgramConversation(connection, deadline, greeting)
        session.play(programs, played, in_waves)
        session.name_errors(played)
        return not connection.unread

    return replayer.converse(conversation, seconds) is None


class ProgramPlayer:
    """Plays programs over one tree. Use it in one thread at a time, and close it."""

    def __init__(
        self,
        loaded_task: LoadedTask,
        sources: SourceTree,
        sandboxes: ReplaySandboxes,
        greeting: tuple[Any, ...],
        role: Role = "attempt",
        new: bool = False,
        allowance: LoadAllowance | None = None,
    ) -> None:
        self._greeting = greeting
        self._allowance = allowance or LoadAllowance()
        self._in_waves = role == "reference"
        self._open = functools.partial(Replayer, loaded_task, sources, sandboxes, role, new, self._allowance)
        self._replayer = self._open()
        self._runs: list[VerifierRun] = []
        self._splits = 0

    def play_once(self, programs: Sequence[Program], seconds: float) -> list[PlayedProgram]:
        """The answers to some programs within some seconds. Where the process ends or hangs, another one takes its
        place, and steps without an answer are LOST."""
        played = [PlayedProgram() for _ in programs]
        if programs and not self._converse(programs, played, seconds):
            self.renew()
            for program, one in zip(programs, played, strict=True):
                one.answers += [LOST] * (len(program.steps) - len(one.answers))
        return played

    def play_apart(self, programs: Sequence[Program], seconds: float) -> list[PlayedProgram]:
        """The answers to some programs within some seconds for each attempt. Where the process ends or hangs, both
        halves are played again, and so on: a program that no process survives costs the others nothing."""
        self._splits = 0
        return self._play_halves(programs, seconds)

    def _play_halves(self, programs: Sequence[Program], seconds: float) -> list[PlayedProgram]:
        played = self.play_once(programs, seconds)
        if len(programs) < 2 or self._splits >= _MOST_SPLITS or not any(LOST in one.answers for one in played):
            return played
        self._splits += 1
        middle = len(programs) // 2
        return [
            half for part in (programs[:middle], programs[middle:]) for half in self._play_halves(part, seconds / 2)
        ]

    def play(self, programs: Sequence[Program], patience: float = 1.0) -> list[PlayedProgram]:
        """The answers to some programs. Where the process ends or hangs, those that were not over are played again,
        each by itself; a step without an answer is LOST. `patience` is a share of the usual time."""
        if not programs:
            return []
        played = [PlayedProgram() for _ in programs]
        if self._converse(programs, played, patience * (_SECONDS + _EACH * len(programs))):
            return played
        lost, over = 1, time.monotonic() + self._allowance.lengthen(patience * _MOST_SECONDS)
        for index, program in enumerate(programs):
            if len(played[index].answers) < len(program.steps):
                self.renew()
                played[index] = one = PlayedProgram()
                is_asked = lost < _MOST_LOST and time.monotonic() < over
                if is_asked and not self._converse([program], [one], _ALONE_SECONDS):
                    lost += 1
                one.answers += [LOST] * (len(program.steps) - len(one.answers))
        return played

    def _converse(self, programs: Sequence[Program], played: Sequence[PlayedProgram], seconds: float) -> bool:
        """Whether the conversation came to its end."""
        return converse(self._replayer, self._greeting, programs, played, seconds, self._in_waves)

    def renew(self) -> None:
        """Go on in another process."""
        self._runs.append(self._replayer.run())
        self.close()
        self._replayer = self._open()

    def run(self) -> VerifierRun:
        """What the processes did, without results."""
        return join_runs([*self._runs, self._replayer.run()])

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._replayer.__exit__(None, None, None)
