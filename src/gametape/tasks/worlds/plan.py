"""The hidden half of a world: its things, their markings, the jobs to come, and what the things hold in the end."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from gametape.tasks.worlds.families import FAMILIES, VALUES, Family, Verb
from gametape.tasks.worlds.rules import MODES, SHARED, drawn, rule_text
from gametape.tasks.worlds.spec import WorldSpec

Holds = Mapping[str, tuple[str, ...]]
"""By thing: what is in it, sorted."""

NOTE = "note"
"""What was noted for a later episode lies beside the things under this name."""
KEEP = "keep"
"""The tool that writes the note."""

_DROPS = 0.3
"""How many of the ordinary jobs take something away, where there is something."""
_FILLED = 2
"""What an ordinary thing holds at the start."""


class Move(NamedTuple):
    """One call: a tool, and its arguments in the order of its schema."""

    tool: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """One thing to do. `marking` and `demand` are empty at an ordinary turn."""

    text: str
    verb: Verb
    item: str
    kind: str
    value: str
    usual: Move
    """What the convention would do."""
    marking: str = ""
    demand: str = ""

    @property
    def right(self) -> Move:
        return self.obeying(self.demand) if self.marking else self.usual

    @property
    def key(self) -> str:
        """The rule, or the kind of job, and its context."""
        return f"{self.marking or self.verb} {self.kind}"

    def hint(self, demand: str = "") -> str:
        """The rule of a load-bearing turn as a hint says it; with `demand`, as if the rule asked for that."""
        return f"rule : {rule_text(self.marking, self.kind, demand or self.demand)}"

    def obeying(self, demand: str) -> Move:
        """The call that a rule with this demand would ask for here."""
        if demand in MODES:
            return Move(self.usual.tool, (self.item, self.value, demand))
        return Move(demand, (self.item, self.value))


@dataclass(frozen=True)
class Plan:
    family: Family
    kinds: Mapping[str, str]
    """By thing."""
    marked: Mapping[str, str]
    """By thing that bears one: the marking."""
    demands: Mapping[str, str]
    """By marking: what it takes in this world."""
    jobs: tuple[Job, ...]
    start: Holds
    goal: Holds


def with_value(holds: Holds, item: str, value: str) -> Holds:
    return {**holds, item: tuple(sorted((*holds[item], value)))}


def without_value(holds: Holds, item: str, value: str) -> Holds:
    left = list(holds[item])
    left.remove(value)
    return {**holds, item: tuple(left)}


def plan_of(spec: WorldSpec) -> Plan:
    """Draw the world of a spec. What is taken away was there at the start, so that no two errors make up for each
    other."""
    rng = Random(f"{spec.cell}/{spec.seed}")
    family = FAMILIES[spec.family] if spec.family else rng.choice(list(FAMILIES.values()))
    demands = dict(SHARED) if spec.hints == "shared" else drawn(spec.rules, rng)
    items = rng.sample(family.items, len(family.items))
    markings = _markings(spec, rng)
    kinds = {item: rng.choice(family.kinds) for item in items}
    marked = dict(zip(items, markings, strict=False))
    for item, marking in marked.items():
        kinds[item] = rng.choice([kind for kind in family.kinds if spec.allows(marking, kind)])
    plain = items[len(marked) :]
    start: Holds = {item: () if item in marked else tuple(sorted(rng.sample(VALUES, _FILLED))) for item in items}
    turns = set(rng.sample(range(spec.horizon), spec.load_bearing))
    bearing = iter(marked)
    jobs: list[Job] = []
    holds, untouched = start, [(item, value) for item in plain for value in start[item]]
    rng.shuffle(untouched)
    for turn in range(spec.horizon):
        if turn in turns:
            item = next(bearing)
            job = _marked_job(family, item, kinds[item], rng.choice(VALUES), marked[item], demands[marked[item]])
        else:
            drops = bool(untouched) and rng.random() < _DROPS
            item, value = untouched.pop() if drops else (rng.choice(plain), rng.choice(VALUES))
            job = _plain_job(family, "drop" if drops else "put", item, kinds[item], value)
        change = with_value if job.verb == "put" else without_value
        holds = change(holds, job.item, job.value)
        jobs.append(job)
    return Plan(family, kinds, marked, demands, tuple(jobs), start, holds)


def _markings(spec: WorldSpec, rng: Random) -> list[str]:
    """One for each load-bearing turn; none comes twice before all have come once."""
    found: list[str] = []
    while len(found) < spec.load_bearing:
        found += rng.sample(spec.rules, len(spec.rules))
    return found[: spec.load_bearing]


def _marked_job(family: Family, item: str, kind: str, value: str, marking: str, demand: str) -> Job:
    usual = Move(family.put_tool, (item, value))
    text = f"{family.job_text('put', value, kind, item)} , which is {marking}"
    return Job(text, "put", item, kind, value, usual, marking, demand)


def _plain_job(family: Family, verb: Verb, item: str, kind: str, value: str) -> Job:
    tool = family.drop_tool if verb == "drop" else family.put_tool
    return Job(family.job_text(verb, value, kind, item), verb, item, kind, value, Move(tool, (item, value)))
