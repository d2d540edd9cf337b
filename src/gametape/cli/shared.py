"""What the verbs share: common options, and how an answer is printed. Imports nothing heavy."""

import asyncio
import json
import signal
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from gametape.record.home import home_directory

if TYPE_CHECKING:
    from gametape.agent.constraints import Constraints
    from gametape.desk.jobs import Desk
    from gametape.record.trajectory_discovery import TrajectorySearch

T = TypeVar("T")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on the last line of stdout.")]
Home = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where state is kept ($GAMETAPE_HOME, or the user's data directory)."),
]
Database = Annotated[
    str | None, typer.Option(metavar="URL", help="PostgreSQL instead of a file under the home ($GAMETAPE_DATABASE).")
]
LocalOnly = Annotated[bool, typer.Option(help="Refuse every model that is not on this machine.")]
ConstraintsFile = Annotated[Path | None, typer.Option(help="A TOML file: what the agent must not touch, run or say.")]
JudgeModel = Annotated[
    str | None, typer.Option(metavar="M", help="Also ask a model: scripted:FILE or openai:MODEL@URL.")
]
TrajectoryPaths = Annotated[
    list[Path], typer.Argument(metavar="PATH...", help="Trajectory files, or directories of them.")
]


emitted_answers: list[int] = []
"""The length of each JSON object that was printed; `main` prints one itself where a verb failed without any."""


def emit_json(answer: dict[str, Any]) -> None:
    """Print the answer of `--json`: one object on one line, in ASCII so that any pipe can carry it."""
    line = json.dumps(answer, allow_nan=False)
    print(line, flush=True)
    emitted_answers.append(len(line))


def emit(answer: dict[str, Any], as_json: bool, show: Callable[[dict[str, Any]], None] | str) -> None:
    """Print an answer as JSON, or show it to a person; a text is printed as it is."""
    if as_json:
        emit_json(answer)
    elif isinstance(show, str):
        typer.echo(show)
    else:
        show(answer)


def tell_skipped(search: "TrajectorySearch") -> dict[str, Any]:
    """Say on stderr what directories held beside trajectories, and return it for the answer."""
    if search.skipped:
        typer.echo(f"gametape: skipped {count_of(search.skipped, 'file')} that are not trajectories", err=True)
    for problem in search.damaged:
        typer.echo(f"gametape: skipped {printable_line(problem)}", err=True)
    return {"skipped": search.skipped, "damaged": search.damaged}


def count_of(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def printable_line(text: str) -> str:
    """One line of printable characters."""
    return "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))


def open_desk(home: Path | None, database: str | None) -> "AbstractContextManager[Desk]":
    from gametape.desk.desk import open_desk

    return open_desk(home_directory(home), database)


def load_constraints(path: Path | None) -> "Constraints":
    from gametape.agent.constraints import Constraints, read_constraints

    return read_constraints(path) if path else Constraints()


async def cancel_on_interrupt(work: Coroutine[Any, Any, T]) -> T:
    """The first Ctrl-C cancels the work, which then ends in order; a second one ends the process."""
    running = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        running.cancel()
        loop.remove_signal_handler(signal.SIGINT)

    loop.add_signal_handler(signal.SIGINT, stop)
    return await running
