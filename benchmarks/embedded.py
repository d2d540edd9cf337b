"""What the embedded model can do: SmolLM2-135M through `gametape solve` on easy tasks, graded by the verifier.

    python benchmarks/embedded.py [--attempts 4] [--temperature 0.6] [TASK...]

Every attempt is a real rollout with its own seed. Prints, and writes beside this script, how many passed and pass@k
(unbiased, with k up to the number of attempts), what ended the others, and what one attempt took. The model is fetched
first if it is not there (`gametape models fetch smollm2`).
"""

import argparse
import asyncio
import json
import os
import platform
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from rich.progress import Progress

from gametape.agent.attempt_directory import AttemptDirectory
from gametape.agent.limits import RolloutLimits
from gametape.agent.solve import SolveRequest, SolveResult, solve
from gametape.cli.shared import home_directory
from gametape.core.messages import Sampling
from gametape.engines import smollm2
from gametape.engines.conversation import Model
from gametape.engines.model_names import resolve_model
from gametape.evals.estimators import pass_at_k
from gametape.record.trajectory_file import load_trajectory
from gametape.tasks.loader import load_task

RESULTS = Path(__file__).parent / "results" / "embedded.json"
EASY = [Path(__file__).parents[1] / "examples/tasks" / name for name in ("double", "greet", "largest")]
TOOLS = frozenset({"write", "shell"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", type=Path, default=EASY, metavar="TASK")
    parser.add_argument("--attempts", type=int, default=4)
    parser.add_argument("--temperature", type=float, default=0.6)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--turn-tokens", type=int, default=160)
    options = parser.parse_args()
    with Progress() as progress:
        bar = progress.add_task("attempts", total=options.attempts * len(options.tasks))
        rows = asyncio.run(measure(options, lambda: progress.advance(bar)))
    machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
    settings = {name: value for name, value in vars(options).items() if name != "tasks"}
    RESULTS.write_text(json.dumps({"machine": machine, **settings, "tasks": rows}, indent=1) + "\n")
    for row in rows:
        passes = "  ".join(f"pass@{k} {value:.2f}" for k, value in row["pass_at"].items())
        print(f"{row['task']:20} {row['passed']} of {row['attempts']}  {passes}  {row['outcomes']}  {row['events']}")


async def measure(options: argparse.Namespace, advance: Any) -> list[dict[str, Any]]:
    home = home_directory(None)
    smollm2.fetch_model(home, lambda _what, _done, _total: None)
    model = resolve_model("smollm2", home)
    rows = []
    with tempfile.TemporaryDirectory(prefix="gametape-embedded-") as scratch:
        for task in options.tasks:
            results = []
            for seed in range(options.attempts):
                results.append(await attempt(task, model, home, Path(scratch) / f"{task.name}-{seed}", seed, options))
                advance()
            rows.append(summarize(task, results))
    await model.close()
    return rows


async def attempt(
    task: Path, model: Model, home: Path, out: Path, seed: int, options: argparse.Namespace
) -> SolveResult:
    request = SolveRequest(
        task=load_task(task, home),
        model=model,
        directory=AttemptDirectory(out),
        home=home,
        limits=RolloutLimits(turns=options.turns, turn_tokens=options.turn_tokens),
        sampling=Sampling(temperature=options.temperature, seed=seed),
        tools=TOOLS,
    )
    return await solve(request)


def summarize(task: Path, results: list[SolveResult]) -> dict[str, Any]:
    passed = sum(result.outcome == "passed" for result in results)
    steps = [step for result in results for step in load_trajectory(result.trajectory).steps]
    events = Counter(event["kind"] for step in steps for event in step.gametape_extra.events or [])
    return {
        "task": task.name,
        "attempts": len(results),
        "passed": passed,
        "pass_at": {k: pass_at_k(len(results), passed, k) for k in (1, 2, 4, 8, 16) if k <= len(results)},
        "outcomes": dict(Counter(result.outcome for result in results)),
        "events": dict(events),
        "turns": sum(result.turns for result in results),
        "seconds_per_attempt": round(sum(result.seconds for result in results) / len(results), 1),
    }


if __name__ == "__main__":
    main()
