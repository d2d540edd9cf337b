"""What is learned of a code base before anything is deleted, as a record that outlives the process."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gametape.tasks.deletion.baseline import Baseline, establish
from gametape.tasks.deletion.functions import Function
from gametape.tasks.deletion.mapping import Reached, reach, source_functions
from gametape.tasks.deletion.project import Project
from gametape.tasks.deletion.site import Site


@dataclass(frozen=True)
class Learned:
    baseline: Baseline
    reached: Reached

    def record(self) -> dict[str, Any]:
        """Functions by their place, tests by their number."""
        numbers = {test: number for number, test in enumerate(self.baseline.tests)}
        places = {str(one): sorted(numbers[test] for test in tests) for one, tests in self.reached.tests.items()}
        protected = sorted(map(str, self.reached.protected))
        baseline = {**asdict(self.baseline), "together": sorted(self.baseline.together)}
        return {"kind": "learned", "baseline": baseline, "reached": places, "protected": protected}


def learn(site: Site, seed: int) -> Learned:
    baseline = establish(site, seed)
    return Learned(baseline, reach(site, baseline))


def recall(record: Mapping[str, Any], project: Project) -> Learned:
    """What `record` wrote down of the same code base."""
    functions: dict[str, Function] = {str(one): one for one in source_functions(project)}
    known = record["baseline"]
    tests = tuple(known["tests"])
    baseline = Baseline(
        tests=tests,
        set_aside={reason: tuple(ids) for reason, ids in known["set_aside"].items()},
        seconds=known["seconds"],
        slowest=known["slowest"],
        together=frozenset(known["together"]),
        collected=tuple(known["collected"]),
    )
    reached = {functions[place]: frozenset(tests[one] for one in found) for place, found in record["reached"].items()}
    return Learned(baseline, Reached(reached, frozenset(functions[place] for place in record["protected"])))
