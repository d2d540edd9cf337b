"""A process that records turns and says so after each, for tests that kill it or take its disk away."""

import resource
import sys
from pathlib import Path

from gametape.core.atif import Agent
from gametape.core.errors import MissingDependency
from gametape.core.step import Step
from gametape.core.trajectory import ATIF_VERSION, Trajectory
from gametape.record.journal import Journal


def message(number: int) -> str:
    """What turn `number` says: longer than a page now and then, so that a kill can tear it."""
    return f"turn {number} " * (1 + number % 7 * 300)


def turn(number: int) -> Step:
    return Step(step_id=number, source="agent", message=message(number))


def begin(path: Path) -> Journal:
    agent = Agent(name="writer", version="1")
    return Journal.create(path, Trajectory(schema_version=ATIF_VERSION, agent=agent, steps=[]))


def write_until_killed(path: Path, turns: int) -> None:
    """Record that many turns, acknowledging each, and close."""
    journal = begin(path)
    for number in range(1, turns + 1):
        journal.append(turn(number))
        print(number, flush=True)
    journal.close()
    print("closed", flush=True)


def write_until_full(path: Path, room: int) -> None:
    """Record until a file may not grow past `room` bytes, fail to close, get more room, and go on."""
    journal = begin(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    number = 1
    try:
        while True:
            journal.append(turn(number))
            number += 1
    except MissingDependency as error:
        print(number - 1, path.stat().st_size, error, flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    try:
        print(journal.close(), flush=True)
    except MissingDependency as error:
        print(error, flush=True)
    sys.stdin.readline()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    journal.append(turn(number))
    journal.close()


if __name__ == "__main__":
    {"kill": write_until_killed, "full": write_until_full}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
