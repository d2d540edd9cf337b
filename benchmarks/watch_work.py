"""Healthy work of synthetic agents: everyday steps, and stretches of one kind of long job, which are no collapse.

Which jobs belong to which half is written beside each; a log is everyday work with a job now and then, drawn by seed.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gametape.watch.observed_step import ObservedStep
from watch_agents import CHOSEN, HELD_OUT, SyntheticAgent

Steps = Iterator[ObservedStep]


@dataclass(frozen=True)
class Job:
    """A stretch of healthy work. `half` is where it is drawn."""

    name: str
    half: str
    steps: Callable[[SyntheticAgent], Steps]


def _said(agent: SyntheticAgent, text: str, often: float = 0.7) -> str:
    return text if agent.rng.random() < often else ""


def _rename(agent: SyntheticAgent) -> Steps:
    old, new = agent.word(), agent.word()
    for number in range(80):
        path = agent.file()
        action = agent.call(1, path, old=old, new=new)
        yield agent.made(_said(agent, f"Renaming {old} to {new} in {path}."), (action,), f"{number % 4 + 1} replaced")


def _rename_by_shell(agent: SyntheticAgent) -> Steps:
    old, new = agent.word(), agent.word()
    for _ in range(90):
        action = agent.call(2, "", command=f"sed -i 's/{old}/{new}/g' {agent.file()}")
        yield agent.made(_said(agent, f"Next file: {old} becomes {new}."), (action,), "")


def _one_file(agent: SyntheticAgent) -> Steps:
    path = agent.file()
    for _ in range(150):
        kind = agent.rng.random()
        if kind < 0.5:
            action, result = agent.call(1, path, old=agent.some(4), new=agent.some(6)), "ok"
        elif kind < 0.75:
            action, result = agent.call(0, path, line=agent.rng.randrange(900)), agent.listing()
        else:
            action, result = agent.call(4, path), agent.tested()
        yield agent.made(_said(agent, agent.say()), (action,), result)


def _one_file_named(agent: SyntheticAgent) -> Steps:
    path = agent.file()
    name = path.rsplit("/", 1)[1]
    for _ in range(150):
        text = agent.rng.choice(
            (
                f"{name}: {agent.some(4)} now comes before {agent.some(2)}.",
                f"In {name} I change {agent.some(3)}, since {agent.some(4)}.",
                f"Still in {name}, {agent.some(5)}.",
                agent.say(),
            )
        )
        action = agent.call(1, path, old=agent.some(5), new=agent.some(5))
        yield agent.made(_said(agent, text, 0.9), (action,), f"edited {path}")


def _one_language(agent: SyntheticAgent) -> Steps:
    language = agent.rng.choice(agent.languages)
    for _ in range(120):
        yield agent.usual(language)


def _poll(agent: SyntheticAgent) -> Steps:
    job, most = agent.word(), agent.rng.randint(60, 90)
    for number in range(most + 1):
        action = agent.call(2, "", command=f"sleep 30; ./status {job}")
        yield agent.made(_said(agent, "Not finished yet.", 0.2), (action,), f"{number}/{most} done")


def _poll_pending(agent: SyntheticAgent) -> Steps:
    job = agent.word()
    for _ in range(agent.rng.randint(6, 18)):
        action = agent.call(2, "", command=f"sleep 60 && queue status {job}")
        yield agent.made(_said(agent, "Still pending, waiting.", 0.3), (action,), f"{job}: pending")
    yield agent.made("It went through.", (agent.call(2, "", command=f"queue status {job}"),), f"{job}: done")


def _poll_falling(agent: SyntheticAgent) -> Steps:
    left = agent.rng.randint(900, 2000)
    while left > 0:
        action = agent.call(2, "", command="make deploy-status")
        yield agent.made("", (action,), f"waiting for {left} pods")
        left -= agent.rng.randint(5, 60)


def _batch(agent: SyntheticAgent) -> Steps:
    what = agent.some(2)
    for number in range(90):
        path = agent.file()
        kind = number % 3
        action = agent.call((0, 1, 4)[kind], path, **({"old": what, "new": agent.some(3)} if kind == 1 else {}))
        result = (agent.listing(), "ok", agent.tested())[kind]
        yield agent.made(_said(agent, f"{('Reading', 'Changing', 'Testing')[kind]} {path}.", 0.5), (action,), result)


def _batch_of_records(agent: SyntheticAgent) -> Steps:
    first = agent.rng.randrange(10_000)
    for number in range(100):
        action = agent.call(2, "", command=f"./import --record {first + number}")
        result = f"imported {agent.some(2)}, {agent.rng.randrange(90)} fields"
        yield agent.made(_said(agent, f"Record {first + number}: {agent.some(2)}.", 0.5), (action,), result)


def _test_edit_test(agent: SyntheticAgent) -> Steps:
    path, test = agent.file(), agent.file()
    failures = agent.rng.randint(2, 5)
    for number in range(100):
        if number % 2:
            action = agent.call(1, path, old=agent.some(3), new=agent.some(4))
            yield agent.made(_said(agent, agent.say(), 1 - agent.silent), (action,), "ok")
        else:
            failures = max(1, failures - (agent.rng.random() < 0.1))
            result = f"{failures} failed, {40 - failures} passed in {agent.rng.random() * 9:.2f}s"
            text = _said(agent, "Does it hold now?", 0.5 * (1 - agent.silent))
            yield agent.made(text, (agent.call(4, test),), result)


def _research(agent: SyntheticAgent) -> Steps:
    """Reading many files and saying nothing."""
    for _ in range(60):
        path = agent.file()
        yield agent.made(_said(agent, agent.say(), 0.5), (agent.call(0, path),), agent.listing())


def _discussion(agent: SyntheticAgent) -> Steps:
    """A conversation: no tools for a while."""
    for _ in range(16):
        yield agent.made(agent.say())


def _daily_round(agent: SyntheticAgent) -> Steps:
    """The same few checks, with other results and remarks."""
    for _ in range(20):
        for command in ("git fetch", "make lint", "uptime"):
            action = agent.call(2, "", command=command)
            yield agent.made(_said(agent, agent.say(), 0.4), (action,), agent.listing())
        yield agent.usual()


def _paging(agent: SyntheticAgent) -> Steps:
    path = agent.file()
    for number in range(60):
        text = _said(agent, f"Lines {60 * number} on: {agent.some(4)}.", 0.3)
        yield agent.made(text, (agent.call(0, path, offset=60 * number, limit=60),), agent.listing())


def _bisection(agent: SyntheticAgent) -> Steps:
    for number in range(40):
        mark = "good" if agent.rng.random() < 0.5 else "bad"
        action = agent.call(2, "", command=f"git bisect {mark}")
        result = f"Bisecting: {400 - 10 * number} revisions left\n[{agent.rng.getrandbits(40):x}] {agent.some(4)}"
        yield agent.made(_said(agent, agent.say(), 0.2), (action,), result)


def _translation(agent: SyntheticAgent) -> Steps:
    """One catalogue, entry by entry."""
    path = f"locale/{agent.word()}.po"
    for _ in range(80):
        one = agent.some(4)
        action = agent.call(1, path, old=f'msgid "{one}"', new=f'msgid "{one}"\nmsgstr "{agent.some(4)}"')
        yield agent.made(_said(agent, f"'{one}' next.", 0.4), (action,), "ok")


def _retry(agent: SyntheticAgent) -> Steps:
    """A flaky step that comes right after a few tries."""
    action = agent.call(2, "", command=f"curl -sf {agent.word()}.local/{agent.word()}")
    for _ in range(agent.rng.randint(2, 4)):
        yield agent.made(_said(agent, "It timed out; once more.", 0.3), (action,), "timed out")
    yield agent.made("", (action,), agent.listing())


JOBS = (
    Job("rename over 80 files", CHOSEN, _rename),
    Job("rename over 90 files by shell", HELD_OUT, _rename_by_shell),
    Job("150 steps on one file", CHOSEN, _one_file),
    Job("150 steps on one file, by name", HELD_OUT, _one_file_named),
    Job("a stretch in one language", CHOSEN, _one_language),
    Job("a stretch in one language ", HELD_OUT, _one_language),
    Job("a poll with a bound", CHOSEN, _poll),
    Job("a poll that pends", HELD_OUT, _poll_pending),
    Job("a poll that falls", HELD_OUT, _poll_falling),
    Job("read, change, test over 30 files", CHOSEN, _batch),
    Job("100 records", HELD_OUT, _batch_of_records),
    Job("test, edit, test", CHOSEN, _test_edit_test),
    Job("test, edit, test ", HELD_OUT, _test_edit_test),
    Job("research", CHOSEN, _research),
    Job("a discussion", CHOSEN, _discussion),
    Job("a daily round", HELD_OUT, _daily_round),
    Job("paging", CHOSEN, _paging),
    Job("a bisection", HELD_OUT, _bisection),
    Job("a catalogue", HELD_OUT, _translation),
    Job("a flaky call", CHOSEN, _retry),
)


def healthy_steps(rng: random.Random, half: str, jobs: Sequence[Job] = JOBS) -> Iterator[tuple[str, ObservedStep]]:
    """Work without end: what kind each step is of, and the step. A job now and then among everyday steps."""
    agent = SyntheticAgent.drawn(rng, half)
    mine = [job for job in jobs if job.half == half]
    for kind, step in _work(agent, mine):
        agent.step += 1
        yield kind, step


def _work(agent: SyntheticAgent, jobs: Sequence[Job]) -> Iterator[tuple[str, ObservedStep]]:
    while True:
        for _ in range(agent.rng.randint(60, 240)):
            yield "everyday", agent.usual()
        job = agent.rng.choice(jobs)
        for step in job.steps(agent):
            yield job.name, step
