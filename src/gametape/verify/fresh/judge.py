"""Ask an attempt fresh calls, and count the answers that agree with the reference's."""

import contextlib
import secrets
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify.fresh.bundles import FreshCall, asked_once
from gametape.verify.fresh.conversation import PlayedProgram
from gametape.verify.fresh.differences import late_errors
from gametape.verify.fresh.player import ProgramPlayer, play_within
from gametape.verify.fresh.readable_program import answer_text, program_text
from gametape.verify.fresh.source import FreshSource
from gametape.verify.fresh.stock import CallStock
from gametape.verify.fresh.stored_calls import StoredCalls
from gametape.verify.machine_load import LoadAllowance
from gametape.verify.replay.replayer import Replayer
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.replay.transcript import Transcript
from gametape.verify.verifier_run import VerifierRun

CALLS = 24
"""Fresh calls of a verdict."""
_PATIENCE_AFTER_A_HANG = 0.25


@dataclass(frozen=True)
class FreshDifference:
    """A fresh call that an attempt answered otherwise than the reference, as text. For graders only."""

    function: str
    input: str
    expected: str
    got: str


@dataclass(frozen=True)
class FreshResult:
    """How many fresh calls an attempt was asked, and on how many it agreed with the reference."""

    calls: int
    agreed: int
    differences: tuple[FreshDifference, ...]
    run: VerifierRun | None = None
    """What the attempt's processes did; None if it was asked nothing, or in the process of the replay."""

    @property
    def share(self) -> float | None:
        """The share of calls that agreed; None where there was none."""
        return self.agreed / self.calls if self.calls else None


class FreshJudge:
    """Judges attempts at one task by calls that nobody has seen. Prepared at the first use; thread-safe."""

    def __init__(
        self,
        transcripts: Sequence[Transcript],
        loaded_task: LoadedTask,
        sandboxes: ReplaySandboxes,
        calls: int = CALLS,
        seed: int | None = None,
        stored: StoredCalls | None = None,
    ) -> None:
        """`stored` are calls that other processes have left, and for which this one leaves some."""
        self._stored = stored
        self._loaded_task = loaded_task
        self._sandboxes = sandboxes
        self._lock = threading.Lock()
        self._ready: int | None = None
        self.source: FreshSource | None = None
        self._stock: CallStock | None = None
        self._background = ThreadPoolExecutor(1, "fresh-calls")
        """The one thread that uses the source once it is prepared."""
        self._ahead: Future[list[FreshCall]] | None = None
        self._has_drawn = False
        if loaded_task.reference is not None and transcripts:
            seed = secrets.randbits(62) if seed is None else seed
            self.source = FreshSource(transcripts, loaded_task, sandboxes, calls, seed)

    @property
    def is_ready(self) -> bool:
        """Whether nothing has to be prepared."""
        return self.source is None or self._ready is not None

    def ready(self) -> int:
        """Prepare, once, and say how many fresh calls a verdict gets."""
        with self._lock:
            return self._prepared()

    def judge(self, sources: SourceTree, seed: int | None = None) -> FreshResult:
        """Ask the attempt a set of calls that no other attempt is asked. `sources` are its files at the source paths.

        With a seed, all calls are drawn from it; else from secrets, see `CallStock`.
        """
        return self.ask(sources, self.draw(seed))

    def draw(self, seed: int | None = None) -> list[FreshCall]:
        """A set of calls with the reference's answers. From the second set on, the next one is made meanwhile."""
        with self._lock:
            if not self._prepared() or self.source is None or self._stock is None:
                return []
            if seed is not None:
                return self._background.submit(self.source.draw, seed).result()
            calls = (self._ahead or self._background.submit(self._stock.take)).result()
            self._ahead = self._background.submit(self._stock.take) if self._has_drawn else None
            self._has_drawn = True
            return calls

    def _prepared(self) -> int:
        if self._ready is None and self.source is not None:
            stored = self._stored.take() if self._stored else None
            if stored is None:
                self.source.prepare()
            else:
                self.source.calls = stored.wanted
            self._stock = CallStock(self.source, stored.calls if stored else ())
            self._ready = len(self._stock.take())
            if self._stored and self._ready and stored is None:
                self._background.submit(self._leave_calls, self._stored, self._stock)
        return self._ready or 0

    def _leave_calls(self, stored: StoredCalls, stock: CallStock) -> None:
        """Calls for others. The processes of the reference end then: where many tasks are prepared they would be many,
        and they are started again when more calls are needed here."""
        stored.fill(stock.draw_for_others)
        if self.source is not None:
            self.source.close()

    def ask(
        self,
        sources: SourceTree,
        calls: Sequence[FreshCall],
        has_hung: bool = False,
        allowance: LoadAllowance | None = None,
    ) -> FreshResult:
        """Ask an attempt these calls. One that `has_hung` before gets less time; what hangs uses up the `allowance`."""
        if not calls or self.source is None or self.source.greeting is None:
            return FreshResult(0, 0, ())
        asked = asked_once(calls)
        programs = [answered.program for answered in asked]
        greeting = self.source.greeting
        player = ProgramPlayer(self._loaded_task, sources, self._sandboxes, greeting, allowance=allowance)
        with contextlib.closing(player):
            answers = player.play(programs, _PATIENCE_AFTER_A_HANG if has_hung else 1.0)
            late = late_errors(programs, [answered.expected for answered in asked], answers, player)
            run = player.run()
        played = {
            one.key: one.expected if at in late else answer
            for at, (one, answer) in enumerate(zip(asked, answers, strict=True))
        }
        differences = tuple(difference for call in calls if (difference := _difference(call, played)) is not None)
        return FreshResult(len(calls), len(calls) - len(differences), differences, run)

    def ask_within(self, replayer: Replayer, calls: Sequence[FreshCall]) -> FreshResult | None:
        """Ask an attempt these calls in the process in which it was just replayed. None unless all agree: what differs
        may do so because of what was replayed, and is to be asked by `ask`."""
        if not calls or self.source is None or self.source.greeting is None:
            return None
        asked = asked_once(calls)
        played = play_within(replayer, self.source.greeting, [answered.program for answered in asked])
        if any(one.first_difference(answers) is not None for one, answers in zip(asked, played, strict=True)):
            return None
        return FreshResult(len(calls), len(calls), ())

    def close(self) -> None:
        self._background.shutdown(cancel_futures=True)
        with self._lock:
            if self.source is not None:
                self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _difference(call: FreshCall, played: dict[str, PlayedProgram]) -> FreshDifference | None:
    for answered in call.programs:
        answers = played[answered.key]
        step = answered.first_difference(answers)
        if step is not None:
            return FreshDifference(
                answered.program.steps[step].function,
                program_text(answered.program, step),
                answer_text(answered.expected, step),
                answer_text(answers, step),
            )
    return None
