"""The plan of a world, hidden from the policy: its items, their markings, the jobs, and the final contents."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from gametape.tasks.worlds.families import FAMILIES, VALUES, Verb, WorldFamily
from gametape.tasks.worlds.rules import MODES, SHARED_RULES, draw_rules, rule_text
from gametape.tasks.worlds.spec import WorldSpec

Contents = Mapping[str, tuple[str, ...]]
"""By item: the values in it, sorted."""

NOTE_ITEM = "note"
"""The name, among the items, of the note for a later episode."""
KEEP_TOOL_NAME = "keep"
"""The tool that writes the note."""

_DROPS = 0.3
"""The share of ordinary jobs that remove a value, while there are values to remove."""
_FILLED = 2
"""How many values an ordinary item contains at the start."""


class WorldAction(NamedTuple):
    """One call: a tool, and its arguments in the order of its schema."""

    tool: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class WorldJob:
    """One job, done by one call. `marking` and `demand` are empty at an ordinary turn."""

    text: str
    verb: Verb
    item: str
    kind: str
    value: str
    default_action: WorldAction
    """The action by the convention."""
    marking: str = ""
    demand: str = ""

    @property
    def correct_action(self) -> WorldAction:
        return self.action_for(self.demand) if self.marking else self.default_action

    @property
    def rule_key(self) -> str:
        """The rule, or the kind of job, and its context."""
        return f"{self.marking or self.verb} {self.kind}"

    def hint(self, demand: str = "") -> str:
        """The text of a hint for a load-bearing turn: the job's rule, or the same rule with another `demand`."""
        return f"rule : {rule_text(self.marking, self.kind, demand or self.demand)}"

    def action_for(self, demand: str) -> WorldAction:
        """The call that a rule with this demand would ask for here."""
        if demand in MODES:
            return WorldAction(self.default_action.tool, (self.item, self.value, demand))
        return WorldAction(demand, (self.item, self.value))


@dataclass(frozen=True)
class WorldPlan:
    family: WorldFamily
    kinds: Mapping[str, str]
    """By thing."""
    markings: Mapping[str, str]
    """By thing that bears one: the marking."""
    demands: Mapping[str, str]
    """By marking: what it takes in this world."""
    jobs: tuple[WorldJob, ...]
    start: Contents
    goal: Contents


def with_value(contents: Contents, item: str, value: str) -> Contents:
    return {**contents, item: tuple(sorted((*contents[item], value)))}


def without_value(contents: Contents, item: str, value: str) -> Contents:
    left = list(contents[item])
    left.remove(value)
    return {**contents, item: tuple(left)}


def draw_plan(spec: WorldSpec) -> WorldPlan:
    """Draw the world of a spec. Values that a job removes are there from the start, so no two errors cancel out."""
    rng = Random(f"{spec.bucket}/{spec.seed}")
    family = FAMILIES[spec.family] if spec.family else rng.choice(list(FAMILIES.values()))
    demands = dict(SHARED_RULES) if spec.hints == "shared" else draw_rules(spec.rules, rng)
    items = rng.sample(family.items, len(family.items))
    markings = _markings(spec, rng)
    kinds = {item: rng.choice(family.kinds) for item in items}
    marked = dict(zip(items, markings, strict=False))
    for item, marking in marked.items():
        kinds[item] = rng.choice([kind for kind in family.kinds if spec.allows(marking, kind)])
    plain = items[len(marked) :]
    start: Contents = {item: () if item in marked else tuple(sorted(rng.sample(VALUES, _FILLED))) for item in items}
    turns = set(rng.sample(range(spec.horizon), spec.load_bearing))
    bearing = iter(marked)
    jobs: list[WorldJob] = []
    contents, untouched = start, [(item, value) for item in plain for value in start[item]]
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
        contents = change(contents, job.item, job.value)
        jobs.append(job)
    return WorldPlan(family, kinds, marked, demands, tuple(jobs), start, contents)


def _markings(spec: WorldSpec, rng: Random) -> list[str]:
    """One marking for each load-bearing turn; none repeats before all have occurred."""
    markings: list[str] = []
    while len(markings) < spec.load_bearing:
        markings += rng.sample(spec.rules, len(spec.rules))
    return markings[: spec.load_bearing]


def _marked_job(family: WorldFamily, item: str, kind: str, value: str, marking: str, demand: str) -> WorldJob:
    action = WorldAction(family.put_tool, (item, value))
    text = f"{family.job_text('put', value, kind, item)} , which is {marking}"
    return WorldJob(text, "put", item, kind, value, action, marking, demand)


def _plain_job(family: WorldFamily, verb: Verb, item: str, kind: str, value: str) -> WorldJob:
    tool = family.drop_tool if verb == "drop" else family.put_tool
    return WorldJob(family.job_text(verb, value, kind, item), verb, item, kind, value, WorldAction(tool, (item, value)))
