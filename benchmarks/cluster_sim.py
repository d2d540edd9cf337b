"""Where a cluster's time would go: a discrete-event simulation of the loop with samplers, sandboxes and learner.

    python benchmarks/cluster_sim.py [--times benchmarks/cluster_times.json] [--updates 20] [--seed 0] [--save]

Rollouts are turns at an engine and calls of a tool, then a verdict on one of the sandboxes' processors; a finished
group waits for the learner, which takes a batch, learns and publishes. Orders run ahead of the learner by two batches,
and groups that are too old are dropped. Every time comes from the file of times, which says of each whether it was
measured or is a guess: nothing here was run on a cluster, and no figure of it is a measurement.
"""

import argparse
import heapq
import itertools
import json
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "cluster_sim.txt"
TIMES = Path(__file__).parent / "cluster_times.json"
_FULL = 0.8
"""A part that is used more than this holds up the others; where there is none, more rollouts would have room."""
GROUP, STALENESS, AHEAD = 8, 4, 2
"""Rollouts of a prompt; versions after which a group is dropped; batches that are ordered ahead."""


@dataclass(frozen=True)
class Size:
    """A cluster: rollouts that are open at a time, processors for verdicts, GPUs that sample and that learn, and groups
    in a batch."""

    rollouts: int
    processors: int
    engines: int
    learners: int
    groups: int


@dataclass
class Outcome:
    """What was counted after the first quarter, in which everything fills up."""

    seconds: float = 0.0
    learning: float = 0.0
    decoding: float = 0.0
    verifying: float = 0.0
    tokens: int = 0
    learned: int = 0
    dropped: int = 0
    ages: list[int] = field(default_factory=list)

    def shares(self, size: Size) -> dict[str, float]:
        """By part: how much of it was busy."""
        return {
            "learner": self.learning / self.seconds,
            "engines": self.decoding / (self.seconds * size.engines),
            "sandboxes": self.verifying / (self.seconds * size.processors),
        }


class Simulation:
    """Events in the order of their time. An engine's share of use is that of its rows, not of the time it runs."""

    def __init__(self, times: dict[str, Any], size: Size, seed: int) -> None:
        self._times, self._size, self._dice = times, size, random.Random(seed)
        self._now, self._count = 0.0, itertools.count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._rows = [0] * size.engines
        self._version, self._groups_under_way, self._learns = 0, 0, False
        self._free_slots, self._free_processors = size.rollouts, size.processors
        self._rollouts: deque[dict[str, Any]] = deque()
        self._verdicts: deque[dict[str, Any]] = deque()
        self._finished: deque[dict[str, Any]] = deque()
        self.outcome = Outcome()

    def run(self, updates: int) -> Outcome:
        warm = max(1, updates // 4)
        self._order()
        begun = 0.0
        while self._version < updates:
            self._now, _, event = heapq.heappop(self._events)
            before = self._version
            event()
            if self._version != before and self._version == warm:
                self.outcome, begun = Outcome(), self._now
        self.outcome.seconds = self._now - begun
        return self.outcome

    def _after(self, seconds: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self._now + seconds, next(self._count), event))

    def _lognormal(self, name: str) -> float:
        spread = self._times[name]
        return math.exp(self._dice.gauss(math.log(spread["median"]), spread["sigma"]))

    def _order(self) -> None:
        while self._groups_under_way + len(self._finished) < (1 + AHEAD) * self._size.groups:
            self._groups_under_way += 1
            group = {"left": GROUP, "oldest": self._version, "tokens": 0}
            self._rollouts.extend({"group": group, "turns": self._turns(), "read": 0} for _ in range(GROUP))
        while self._free_slots and self._rollouts:
            self._free_slots -= 1
            rollout = self._rollouts.popleft()
            if rollout["group"]["left"] == GROUP and not rollout["group"]["tokens"]:
                rollout["group"]["oldest"] = self._version
            self._turn(rollout)

    def _turns(self) -> int:
        return max(1, min(self._times["turns"]["most"], round(self._lognormal("turns"))))

    def _turn(self, rollout: dict[str, Any]) -> None:
        """At the engine with the fewest rows; all rows of an engine take a step together."""
        engine = min(range(self._size.engines), key=self._rows.__getitem__)
        self._rows[engine] += 1
        decode, rows = self._times["decode"], self._rows[engine]
        tokens = max(1, round(self._dice.expovariate(1 / self._times["turn_tokens"]["mean"])))
        step = decode["seconds_a_step"] + decode["seconds_a_step_a_row"] * rows
        waits = max(1.0, rows / decode["rows"])
        read = self._times["observation_tokens"]["mean"] / self._times["prefill_tokens_a_second"]["value"]
        seconds = (tokens * step + read) * waits
        self.outcome.decoding += seconds / waits / decode["rows"]
        self.outcome.tokens += tokens
        rollout["group"]["tokens"] += tokens + self._times["observation_tokens"]["mean"]
        rollout["turns"] -= 1
        self._after(seconds, lambda: self._decoded(rollout, engine))

    def _decoded(self, rollout: dict[str, Any], engine: int) -> None:
        self._rows[engine] -= 1
        if rollout["turns"]:
            self._after(self._lognormal("tool_seconds"), lambda: self._turn(rollout))
            return
        self._verdicts.append(rollout)
        self._verify()

    def _verify(self) -> None:
        while self._free_processors and self._verdicts:
            self._free_processors -= 1
            rollout, seconds = self._verdicts.popleft(), self._lognormal("verify_seconds")
            self.outcome.verifying += seconds
            self._after(seconds, lambda rollout=rollout: self._verified(rollout))  # type: ignore[misc]

    def _verified(self, rollout: dict[str, Any]) -> None:
        self._free_processors += 1
        self._free_slots += 1
        group = rollout["group"]
        group["left"] -= 1
        if not group["left"]:
            self._groups_under_way -= 1
            self._finished.append(group)
        self._verify()
        self._order()
        self._learn()

    def _learn(self) -> None:
        """A batch of groups that are young enough."""
        while self._finished and self._version - self._finished[0]["oldest"] > STALENESS:
            self._finished.popleft()
            self.outcome.dropped += 1
        fresh = [group for group in self._finished if self._version - group["oldest"] <= STALENESS]
        if self._learns or len(fresh) < self._size.groups:
            return
        batch = fresh[: self._size.groups]
        for group in batch:
            self._finished.remove(group)
        self._learns = True
        self.outcome.ages += [self._version - group["oldest"] for group in batch]
        self.outcome.learned += len(batch)
        tokens = sum(group["tokens"] for group in batch)
        efficiency = self._times["learn_efficiency_a_doubling"]["value"] ** math.log2(self._size.learners)
        rate = self._times["learn_tokens_a_second"]["value"] * self._size.learners * efficiency
        self.outcome.learning += tokens / rate
        transfer = self._times["transfer"]
        self._after(tokens / rate, lambda: None)
        self._after(
            tokens / rate + transfer["seconds"] + transfer["bytes"] / transfer["bytes_a_second"], self._published
        )
        self._order()

    def _published(self) -> None:
        self._learns = False
        self._version += 1
        self._learn()


SIZES = [
    Size(8, 4, 1, 1, 1),
    Size(64, 16, 1, 1, 4),
    Size(256, 64, 1, 1, 8),
    Size(1024, 256, 4, 2, 32),
    Size(4096, 512, 16, 4, 128),
    Size(4096, 1024, 16, 8, 128),
    Size(10000, 2500, 40, 16, 312),
    Size(10000, 2500, 256, 256, 312),
]


def row(size: Size, outcome: Outcome) -> str:
    shares = outcome.shares(size)
    dropped = outcome.dropped / max(1, outcome.dropped + outcome.learned)
    age = sum(outcome.ages) / max(1, len(outcome.ages))
    most = max(shares, key=shares.__getitem__)
    most = most if shares[most] > _FULL else "rollouts open"
    return (
        f"| {size.rollouts:,} | {size.processors:,} | {size.engines} + {size.learners} | {size.groups} "
        f"| {outcome.tokens / outcome.seconds:,.0f} | {1 - shares['learner']:.0%} | {shares['engines']:.0%} "
        f"| {shares['sandboxes']:.0%} | {age:.1f} | {dropped:.1%} | {most} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=Path, default=TIMES)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    times = json.loads(options.times.read_text(encoding="utf-8"))
    lines = [
        f"python benchmarks/cluster_sim.py --updates {options.updates} --seed {options.seed}",
        f"a simulation, not a measurement: {times['what']}",
        "",
        "| rollouts open | processors | GPUs: engines + learner | groups a batch | tokens sampled a second "
        "| learner idle | engines full | sandboxes busy | age in versions | dropped | what holds it up |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for size in SIZES:
        lines.append(row(size, Simulation(times, size, options.seed).run(options.updates)))
        print(lines[-1], flush=True)
    if options.save:
        RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
