"""A month of a desk in minutes: threads, heartbeats, goals, kills, changes of clocks, outages and full disks.

Run it with `python benchmarks/soak.py`, or in small with `--days 2 --threads 4 --heartbeats 12 --kills 8`. It is the
desk's own code: the runner with its workflow engine, the scheduler, threads and goals in sandboxes, the vault and the
outbox; the models are scripted and the clock is set by the plan, an hour a round. Each life is a process of its own. It
is killed with SIGKILL after a number of writes that the seed has drawn, or ends because its disk takes no more, and the
next one goes on. A disk is full in that no file of the process may grow any more. In the end everything is accounted
for (`soak_accounting.py`). The plan is the same for the same seed; in which write of a life a thread of the process is
cut off is not. `--save` writes the figures to benchmarks/results/soak.json.
"""

import argparse
import asyncio
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gametape.core.errors import GametapeError
from gametape.desk import runner, workflow_engine
from gametape.desk.desk import open_desk
from gametape.desk.goals.goal_request import GoalRequest, create_goal
from gametape.desk.heartbeats import registry
from gametape.desk.heartbeats.scheduler import HeartbeatScheduler
from gametape.desk.jobs import JOB_HANDLERS, Desk, Job, load_handler
from gametape.desk.outbox import AlreadyDecided
from gametape.desk.runner import acquire_runner_lock, job_runner
from gametape.desk.threads.lifecycle import create_thread
from gametape.desk.threads.thread import Thread, new_thread_id
from gametape.desk.vault import repository as vault_repository
from gametape.desk.workflow_engine import JobClient, open_job_client
from gametape.engines.errors import EngineError
from gametape.engines.scripted import ScriptedEngine
from gametape.record import append_log, atomic
from soak_accounting import account
from soak_plan import ROUND, ROUNDS_A_DAY, Plan, Size, heartbeat_files, thread_turns, write_script

RESULTS = Path(__file__).parent / "results" / "soak.json"
_OVER, _FULL = 0, 3
_real_time = time.time


def set_up(top: Path, plan: Plan, begun: float) -> dict[str, Any]:
    """A home with threads, heartbeats and prepared goals. What the accounting needs to know of it is returned."""
    home, workspace = top / "home", top / "workspace"
    (home / "desk").mkdir(parents=True)
    workspace.mkdir()
    for part in ("notify", "outbox"):
        command = ["/bin/sh", "-c", f"line=$(cat) && printf '%s\\n' \"$line\" >> {top / part}.jsonl"]
        with (home / "desk" / "desk.toml").open("a") as settings:
            settings.write(f"[{part}]\ncommand = {json.dumps(command)}\n")
    known: dict[str, Any] = {"threads": [], "goals": [], "begun": begun}
    for number in range(plan.size.threads):
        model = write_script(top / f"thread-{number}.jsonl", thread_turns(number, plan.size.says))
        name = new_thread_id()
        thread = Thread(
            thread_id=name, model=model, created=begun, vault=str(home / "vault"), store=name, title=f"soak {number}"
        )
        asyncio.run(create_thread(home, thread))
        known["threads"].append(name)
    for number in range(plan.size.goals):
        place = top / f"goal-{number}"
        place.mkdir()
        (place / "README").write_text("nothing is done\n")
        write = {"name": "write", "arguments": {"path": "done.txt", "content": f"{number}\n"}}
        model = write_script(top / f"goal-{number}.jsonl", [("Nothing yet.", []), ("Now.", [write]), ("Done.", [])])
        wish = GoalRequest(workspace=place, success="test -f done.txt", model=model, instruction="Make done.txt.")
        known["goals"].append(create_goal(home, wish).root.name)
    with open_desk(home) as desk:
        for name, content in heartbeat_files(top, plan.size).items():
            if name.startswith("events"):
                (workspace / f"{name}.txt").write_text("0\n")
            registry.add(desk, name, content)
        known["heartbeats"] = registry.heartbeat_names(desk)
    return known


class Clock:
    """What `time.time` says in a life: set by the plan, and a millisecond later each time it is asked."""

    def __init__(self, begun: float) -> None:
        self.begun, self.wall, self.steady, self.asked = begun, begun, 0.0, 0

    def turn_to(self, number: int, plan: Plan) -> None:
        self.steady = number * ROUND
        self.wall, self.asked = self.begun + self.steady + plan.wall_offset(number), 0

    def time(self) -> float:
        self.asked += 1
        return self.wall + min(self.asked * 0.001, ROUND / 2)


class Life:
    """One process: it goes on with the round in which the last one ended."""

    def __init__(self, top: Path, plan: Plan, known: dict[str, Any], number: int, spent: set[int]) -> None:
        self.top, self.plan, self.known, self.home = top, plan, known, top / "home"
        self.kill_after = plan.kill_after[number] if number < len(plan.kill_after) else sys.maxsize
        self.full = plan.full - spent
        self.clock, self.writes, self.is_out = Clock(known["begun"]), 0, False

    def run(self) -> int:
        os.setpgid(0, 0)
        descriptor = os.open(self.top / "lives.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(descriptor, 2)
        time.time = self.clock.time
        self._count_writes()
        self._break_models()
        for module, name in ((workflow_engine, "_POLL_SECONDS"), (runner, "_SECONDS_BETWEEN_CHECKS")):
            setattr(module, name, 0.02)
        for kind in JOB_HANDLERS:
            load_handler(kind)
        try:
            asyncio.run(self._live())
        except GametapeError as error:
            self._note("ended", {"why": str(error), "code": error.exit_code})
            return error.exit_code
        return _OVER

    def _count_writes(self) -> None:
        """Be killed after so many writes of a file, of a record or of a state."""
        for owner, name in (
            (atomic, "write_all"),
            (append_log, "write_all"),
            (registry, "update_state"),
            (registry, "record_tick"),
            (vault_repository, "write_atomically"),
        ):
            setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*words: Any, **more: Any) -> Any:
            self.writes += 1
            if self.writes == self.kill_after:
                os.kill(os.getpid(), signal.SIGKILL)
            return act(*words, **more)

        return counted

    def _break_models(self) -> None:
        generate = ScriptedEngine.generate

        async def answer(engine: ScriptedEngine, request: Any) -> Any:
            if self.is_out:
                raise EngineError("unreachable", "the model server is down")
            return await generate(engine, request)

        ScriptedEngine.generate = answer  # type: ignore[method-assign]

    async def _live(self) -> None:
        number = self._begin(self._round())
        with open_desk(self.home) as desk, open_job_client(desk) as client:
            lock = await acquire_runner_lock(desk)
            async with job_runner(desk, lock):
                scheduler = HeartbeatScheduler(desk, client, lambda line: self._note("log", {"line": line}))
                while number < self.plan.size.rounds:
                    await self._act(desk, client, number)
                    await scheduler.round(time.time(), self.clock.steady)
                    await self._drain(client)
                    await desk.notifications.retry()
                    if number % ROUNDS_A_DAY == 0:
                        client.delete_finished(registry.TICKS, time.time() - 86_400)
                    self._free()
                    number = self._begin(number + 1)

    def _round(self) -> int:
        file = self.top / "round"
        return int(file.read_text()) if file.exists() else 0

    def _begin(self, number: int) -> int:
        """Set the clock, and fill the disk where it is full now."""
        self.clock.turn_to(number, self.plan)
        temporary = self.top / "round.new"
        temporary.write_text(str(number))
        temporary.replace(self.top / "round")
        self.is_out = number in self.plan.outages
        if number in self.full:
            self._note("full", {"round": number})
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        return number

    @staticmethod
    def _free() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    async def _act(self, desk: Desk, client: JobClient, number: int) -> None:
        """What a person does in a round. A round that is lived again asks for the same with the same keys."""
        for thread, message in self.plan.says.get(number, []):
            name, key = self.known["threads"][thread], f"say-{thread}-{message}"
            text = {"thread": name, "text": f"Part {message}, please.", "key": key, "anyway": True}
            client.submit(Job("turn", key, text, name))
        if number in self.plan.goals:
            goal = self.known["goals"][self.plan.goals[number]]
            client.submit(Job("goal", goal, {"goal_id": goal}))
        if number in self.plan.news:
            files = sorted((self.top / "workspace").glob("events-*.txt"))
            if files:
                files[self.plan.news[number] % len(files)].write_text(f"{number}\n")
        if number % 12 == 0:
            await self._decide(desk)

    async def _decide(self, desk: Desk) -> None:
        """Approve what waits, each draft four times at once; what was cut off is sent again, with a note of it."""
        for draft in desk.outbox.list():
            if draft.state in ("draft", "approved"):
                tries = (desk.outbox.approve(draft.id) for _ in range(4))
                answers = await asyncio.gather(*tries, return_exceptions=True)
                if trouble := [error for error in answers if isinstance(error, Exception)]:
                    raise trouble[0]
            elif draft.state == "sending":
                try:
                    await desk.outbox.approve(draft.id)
                except AlreadyDecided:
                    self._note("again", {"key": draft.key})
                    await desk.outbox.approve(draft.id, again=True)

    @staticmethod
    async def _drain(client: JobClient) -> None:
        while await asyncio.to_thread(client.unfinished):
            await asyncio.sleep(0.02)

    def _note(self, what: str, more: dict[str, Any]) -> None:
        line = json.dumps({"what": what, "round": self._round(), **more}) + "\n"
        try:
            descriptor = os.open(self.top / "notes.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.write(descriptor, line.encode())
            os.close(descriptor)
        except OSError:
            return  # the disk is full


def live(top: Path, plan: Plan, known: dict[str, Any]) -> Counter[str]:
    """Life after life until the last round is over. Returns how many ended in which way."""
    ends: Counter[str] = Counter()
    spent: set[int] = set()
    for number in range(10 * (len(plan.kill_after) + len(plan.full) + 10)):
        child = os.fork()
        if child == 0:
            code = 70
            try:
                code = Life(top, plan, known, number, spent).run()
            finally:
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        at = int((top / "round").read_text())
        if at in plan.full:
            spent.add(at)
        if os.WIFSIGNALED(status):
            ends["killed" if os.WTERMSIG(status) == signal.SIGKILL else f"signal {os.WTERMSIG(status)}"] += 1
        elif (code := os.WEXITSTATUS(status)) == _OVER:
            ends["over"] += 1
            return ends
        else:
            ends["disk full" if code == _FULL else f"exit code {code}"] += 1
        print(f"\rround {at} of {plan.size.rounds}, {ends.total()} lives", end="", file=sys.stderr, flush=True)
    raise SystemExit("the month does not end")


def run(seed: int, size: Size) -> dict[str, Any]:
    plan, began = Plan.draw(seed, size), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gametape-soak-") as scratch:
        top = Path(scratch)
        subprocess.run([sys.executable, __file__, "set-up", str(top), str(seed), json.dumps(asdict(size))], check=True)
        known = json.loads((top / "known.json").read_text())
        ends = live(top, plan, known)
        answer = account(top, plan, known)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "seed": seed,
        "size": asdict(size),
        "seconds": round(time.monotonic() - began, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "lives": dict(ends),
        **answer,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    for name, value in asdict(Size()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=value)
    parser.add_argument("--save", action="store_true")
    arguments = vars(parser.parse_args())
    seed, save = arguments.pop("seed"), arguments.pop("save")
    answer = run(seed, Size(**arguments))
    machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
    print(json.dumps({"machine": machine, **answer}))
    if save:
        RESULTS.write_text(json.dumps({"machine": machine, **answer}, indent=1) + "\n")
    return 1 if answer["broken"] else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["set-up"]:
        root, drawn = Path(sys.argv[2]), Plan.draw(int(sys.argv[3]), Size(**json.loads(sys.argv[4])))
        (root / "known.json").write_text(json.dumps(set_up(root, drawn, _real_time() // ROUND * ROUND)))
    else:
        sys.exit(main())
