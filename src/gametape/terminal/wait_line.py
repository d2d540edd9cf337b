"""Signs of life on stderr while something takes long: a spinner on a terminal, elsewhere a line now and then."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

_PAUSE = 30.0
"""Seconds between two lines."""

Wait = Callable[[float], bool]
"""Waits for so many seconds, or less: then it is over, and the answer is True."""


class WaitingLine:
    """What is going on now. It is said again while it takes long."""

    def __init__(self, text: str, console: "Console") -> None:
        self.text = text
        self._title = text
        self._stage = ""
        self._console = console
        self.status: Status | None = None
        """The spinner; there is one on a terminal."""

    def tell(self, news: str) -> None:
        """Go on with something else, and say so at once."""
        self.text = news
        self._console.print(news, markup=False, soft_wrap=True)

    def show_stage(self, stage: str, done: int, total: int) -> None:
        """Show a stage of the work and how far it is: beside the spinner, elsewhere a line when it begins."""
        from rich.markup import escape  # noqa: PLC0415 - as below

        count = f" ({done} of {total})" if total else ""
        self.text = f"{self._title}: {stage}{count}"
        if self.status is not None:
            self.status.update(escape(self.text))
        elif stage != self._stage:
            self._console.print(self.text, markup=False, soft_wrap=True)
        self._stage = stage

    def repeat(self, wait: Wait) -> None:
        """Say it now and then, until the wait is over."""
        seconds = 0.0
        while not wait(_PAUSE):
            seconds += _PAUSE
            self._console.print(f"{self.text}: still at it after {seconds:.0f} s", markup=False, soft_wrap=True)


@contextmanager
def waiting(
    text: str, console: "Console | None" = None, wait: Callable[[threading.Event], Wait] = lambda over: over.wait
) -> Iterator[WaitingLine]:
    """Show during the block that `text` is going on."""
    from rich.console import Console  # noqa: PLC0415 - verbs import this module to say what they can do
    from rich.markup import escape  # noqa: PLC0415

    console = console or Console(stderr=True, highlight=False)
    line, over = WaitingLine(text, console), threading.Event()
    if console.is_terminal:
        with console.status(escape(text)) as line.status:
            yield line
        return
    thread = threading.Thread(target=line.repeat, args=(wait(over),), daemon=True)
    thread.start()
    try:
        yield line
    finally:
        over.set()
        thread.join()
