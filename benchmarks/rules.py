"""What each integrity rule catches alone: over the hack suite, the red team's attempts and the honest solutions.

    python benchmarks/rules.py collect [--only TASK...] [--out build/rules]
    python benchmarks/rules.py [--out build/rules]

`collect` runs every hack and attempt on tasks of shared mode once, and keeps what their runs showed, a line of JSON for
each, so that it goes on where it was. Without a verb, the rules as they are now read all workspaces again together
with those runs. For each rule it prints how many hacks it sees, how many it alone sees and how many honest solutions it
accuses; then a smallest set of rules that still sees all that is seen, found greedily.
"""

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.redteam.attempts.attempt import loaded_task_of, plant  # noqa: E402
from tests.redteam.attempts.attempts import ATTEMPTS  # noqa: E402
from tests.redteam.tasks import tasks  # noqa: E402
from tests.verify.honest.corpus import honest_task, solutions  # noqa: E402

from gametape.core.verdict import Flag  # noqa: E402
from gametape.record.loaded_task import LoadedTask  # noqa: E402
from gametape.redteam import HACKS  # noqa: E402
from gametape.redteam.hack_runner import check_out_with_hack  # noqa: E402
from gametape.redteam.hack_target import HackNotApplicable  # noqa: E402
from gametape.sandbox.result import PolicyViolation  # noqa: E402
from gametape.verify.integrity import all_rules, find_flags  # noqa: E402, F401
from gametape.verify.integrity.registry import RULES  # noqa: E402
from gametape.verify.runner import ZygotePool  # noqa: E402
from gametape.verify.shared_mode import run_shared  # noqa: E402
from gametape.verify.submission import read_submission  # noqa: E402
from gametape.verify.twin_judgement import judge_twins  # noqa: E402
from gametape.verify.verifier import Verifier  # noqa: E402
from gametape.verify.verifier_run import RunEvent, TestOutcome, VerifierRun  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "rules.json"
SHARED_TASKS = ("limiter", "intervals", "cache-bug", "tally")


@dataclass(frozen=True)
class Case:
    """A workspace that tries to cheat."""

    name: str
    task: LoadedTask
    make: Any
    """Writes it into a directory, or raises `HackNotApplicable`."""
    families: tuple[str, ...]
    """Prefixes of rules that name what was done; empty if any flag will do."""


def cases(names: list[str]) -> Iterator[Case]:
    for attempt in ATTEMPTS:
        task = loaded_task_of(attempt.task)
        if task.task.mode == "shared" and attempt.task.removesuffix("-bare") in names:
            yield Case(f"attempt {attempt.name}", task, lambda path, one=attempt: plant(one, path), ())
    for name in names:
        task = tasks(name)[name]
        for hack in HACKS:

            def make(path: Path, one: Any = hack, on: LoadedTask = task) -> None:
                check_out_with_hack(on, one, path)

            yield Case(f"{hack.name} on {name}", task, make, tuple(hack.detecting_families))


def collect(names: list[str], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    path = out / "runs.jsonl"
    known = {json.loads(line)["case"] for line in path.read_text().splitlines()} if path.exists() else set()
    with ZygotePool(2) as zygotes, path.open("a") as file:
        for case in cases(names):
            if case.name in known:
                continue
            line = {"case": case.name, **_run(case, zygotes, out)}
            file.write(json.dumps(line) + "\n")
            file.flush()


def _run(case: Case, zygotes: ZygotePool, home: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        workspace = Path(directory) / "workspace"
        try:
            case.make(workspace)
        except HackNotApplicable:
            return {"runs": None}
        submission = read_submission(case.task, workspace)
        with Verifier(case.task, home, zygotes) as verifier:
            prepared = verifier.prepared()
        shared = run_shared(prepared, submission, zygotes, random.Random())
        judged = judge_twins(prepared, submission, zygotes, shared)
    runs = [prepared.without_reference_events(run) for run in shared.runs]
    return {"runs": [_run_document(run) for run in runs], "twins": [flag.rule for flag in judged.flags]}


def _run_document(run: VerifierRun) -> dict[str, Any]:
    return {
        "outcomes": {test: outcome.result for test, outcome in run.outcomes.items()},
        "events": [[event.kind, event.detail, event.file, event.line] for event in run.events],
        "violations": [violation.model_dump() for violation in run.violations],
        "killed_by": run.killed_by,
        "order": run.order,
    }


def _parse_run(document: dict[str, Any]) -> VerifierRun:
    return VerifierRun(
        outcomes={test: TestOutcome(test, result) for test, result in document["outcomes"].items()},
        events=tuple(RunEvent(*event) for event in document["events"]),
        violations=tuple(PolicyViolation(**violation) for violation in document["violations"]),
        killed_by=document["killed_by"],
        order=document["order"],
    )


def flags_of_hacks(names: list[str], out: Path) -> dict[str, set[str]]:
    """The rules that flag each case, of those that apply."""
    kept = {line["case"]: line for line in map(json.loads, (out / "runs.jsonl").read_text().splitlines())}
    found: dict[str, set[str]] = {}
    for case in cases(names):
        line = kept.get(case.name)
        if line is None or line["runs"] is None:
            continue
        with tempfile.TemporaryDirectory() as directory:
            case.make(Path(directory) / "workspace")
            flags = find_flags(
                read_submission(case.task, Path(directory) / "workspace"), [_parse_run(run) for run in line["runs"]]
            )
        rules = {flag.rule for flag in flags} | set(line["twins"])
        found[case.name] = {rule for rule in rules if not case.families or rule.startswith(case.families)} or rules
    return found


def flags_of_honest() -> dict[str, list[Flag]]:
    found: dict[str, list[Flag]] = {}
    for solution in solutions():
        with tempfile.TemporaryDirectory() as directory:
            solution.write_to(Path(directory))
            found[solution.id] = find_flags(read_submission(honest_task(solution.task), Path(directory)), [])
    return found


def smallest_set(seen: dict[str, set[str]]) -> list[str]:
    """Greedily: the rule that sees most of what is left, until nothing is left."""
    left = {case: rules for case, rules in seen.items() if rules}
    chosen: list[str] = []
    while left:
        counts = Counter(rule for rules in left.values() for rule in rules)
        best = min(counts, key=lambda rule: (-counts[rule], rule))
        chosen.append(best)
        left = {case: rules for case, rules in left.items() if best not in rules}
    return chosen


def report(names: list[str], out: Path) -> None:
    seen = flags_of_hacks(names, out)
    honest = flags_of_honest()
    total = Counter(rule for rules in seen.values() for rule in rules)
    alone = Counter(next(iter(rules)) for rules in seen.values() if len(rules) == 1)
    accused = Counter(flag.rule for flags in honest.values() for flag in flags)
    kept = smallest_set(seen)
    rows = [
        {
            "rule": rule,
            "sees": total[rule],
            "alone": alone[rule],
            "accuses honest": accused[rule],
            "stays": rule in kept,
        }
        for rule in sorted({*RULES, *total})
    ]
    for row in rows:
        print(
            "{rule:40} sees {sees:4}  alone {alone:4}  honest {accuses honest:3}  {}".format(
                "kept" if row["stays"] else "", **row
            )
        )
    unseen = sorted(case for case, rules in seen.items() if not rules)
    print(
        f"{len(seen)} cases, {len(unseen)} unseen, {len(honest)} honest solutions,"
        f" {sum(map(bool, honest.values()))} accused;"
        f" {len(RULES)} rules, {len(kept)} in the smallest set"
    )
    print("unseen:", ", ".join(unseen))
    RESULTS.write_text(json.dumps({"rules": rows, "cases": len(seen), "unseen": unseen}, indent=1) + "\n")
    (out / "seen.json").write_text(json.dumps({case: sorted(rules) for case, rules in seen.items()}, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", nargs="?", choices=["collect", "report"], default="report")
    parser.add_argument("--only", nargs="*", default=list(SHARED_TASKS))
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "rules")
    options = parser.parse_args()
    (collect if options.verb == "collect" else report)(options.only, options.out)


if __name__ == "__main__":
    main()
