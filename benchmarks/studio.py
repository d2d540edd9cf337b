"""How long the studio takes with many runs and with a huge tape, and how much memory.

    python benchmarks/studio.py [--runs N] [--rollouts N] [--steps N]

Makes a directory with N training runs of which one has kept many rollouts, and one rollout of many steps, and asks for
pages as a browser would, in one process. Prints seconds, and the largest memory of the process so far.
"""

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

from starlette.testclient import TestClient

from gametape.studio.web.app import create_app
from gametape.studio.web.catalogue import RunCatalogue
from gametape.studio.web.site import StudioSite


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rollouts", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        tape = make_runs(root, options.runs, options.rollouts, options.steps)
        print(f"{options.runs} runs, one with {options.rollouts:,} rollouts; ", end="")
        print(f"a tape of {options.steps:,} steps, {tape.stat().st_size / 1e6:.0f} MB")
        measure(root, options.steps)


def make_runs(root: Path, runs: int, rollouts: int, steps: int) -> Path:
    for number in range(runs):
        trajectories = root / f"run{number:04}" / "trajectories"
        trajectories.mkdir(parents=True)
        (trajectories.parent / "config.toml").write_text('arm = "rlvr"\n')
        lines = [json.dumps({"kind": "update", "step": step, "reward": 0.5}) for step in range(1, 101)]
        (trajectories.parent / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    kept = root / "run0000" / "trajectories"
    for number in range(rollouts):
        document = trajectory([step(1)])
        (kept / f"d{number // 8:08}.{number % 8:03}.json").write_text(json.dumps(document))
    tape = root / "run0001" / "trajectories" / "huge.000.json"
    head, tail = json.dumps(trajectory([])).split("[]")
    with tape.open("w") as file:  # one step at a time: its memory would count as the studio's
        file.write(f"{head}[{json.dumps(step(1))}")
        file.writelines(f", {json.dumps(step(number))}" for number in range(2, steps + 1))
        file.write(f"]{tail}")
    return tape


def trajectory(steps: list[dict[str, object]]) -> dict[str, object]:
    agent = {"name": "gametape", "version": "0"}
    return {"schema_version": "ATIF-v1.7", "trajectory_id": "t", "agent": agent, "steps": steps, "extra": {"task": "t"}}


def step(number: int) -> dict[str, object]:
    sampled = {"completion_token_ids": [*range(100)], "logprobs": [-0.123456789] * 100}
    return {
        "step_id": number,
        "source": "agent",
        "message": 'a "text" with \\ and\n' * 20,
        "tool_calls": [{"tool_call_id": "c", "function_name": "write", "arguments": {"path": "a", "text": "[{" * 20}}],
        "observation": {"results": [{"source_call_id": "c", "content": "a line\n" * 200}]},
        "metrics": {"prompt_token_ids": [*range(1500)], **sampled},
        "extra": {"gametape": {"loss_mask": [1] * 100, "policy_versions": [3] * 100}},
    }


def measure(root: Path, steps: int) -> None:
    site = StudioSite(RunCatalogue(root, root / "no-home"))
    browser = TestClient(create_app(site), base_url="http://127.0.0.1:7337")
    middle = steps // 2 - steps // 2 % 20
    for label, address in (
        ("the list of runs", "/"),
        ("the list of runs again", "/"),
        ("100 of the rollouts", "/rollouts?run=run0000&first=5000"),
        ("the curves of a run", "/data/series?run=run0000"),
        ("the huge tape, for the first time", "/data/tape?run=run0001&rollout=huge.000"),
        ("the huge tape again", "/data/tape?run=run0001&rollout=huge.000"),
        ("20 steps from its middle", f"/data/steps?run=run0001&rollout=huge.000&first={middle}"),
    ):
        began = time.perf_counter()
        answer = browser.get(address)
        seconds = time.perf_counter() - began
        assert answer.status_code == 200, answer.text
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{label:36} {seconds:8.3f} s {len(answer.content) / 1e3:8.0f} kB sent {memory:6.0f} MB of memory")


if __name__ == "__main__":
    main()
