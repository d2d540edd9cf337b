"""The functions of the public API. Each does what a verb of the command line does, and returns typed results.

They block until the work is done, so they cannot be called from a running event loop. `home` is where models, verdicts
and interpreters are kept; without one it is $GAMETAPE_HOME or the user's data directory.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

from gametape.agent.attempt_directory import AttemptDirectory
from gametape.agent.episode import Episode, rollout_config_for
from gametape.agent.episode import run_episode as run_one_episode
from gametape.agent.limits import RolloutLimits
from gametape.agent.scripted_policies import SCRIPTED_POLICIES
from gametape.agent.solve import SolveRequest, SolveResult, solve
from gametape.core.messages import Sampling
from gametape.core.protocols import Environment
from gametape.core.verdict import Verdict
from gametape.engines.conversation import Model
from gametape.engines.model_names import resolve_model
from gametape.evals.model_selector import ModelSelector
from gametape.evals.report import build_report
from gametape.evals.runner import EvalSettings, NullAttemptStore
from gametape.evals.runner import evaluate as run_evaluation
from gametape.evals.suite import SuiteItem, find_tasks, open_suite
from gametape.record.home import home_directory
from gametape.record.loaded_task import LoadedTask
from gametape.redteam.admission import Admission, HackChoice, admit
from gametape.tasks import loader
from gametape.tasks.mining import miner
from gametape.tasks.mining.summary import MiningSummary
from gametape.verify.layers.profiles import Profile
from gametape.verify.reward import RewardKind
from gametape.verify.verifier import Verifier

Result = TypeVar("Result")


def load_task(path: Path | str, home: Path | str | None = None) -> LoadedTask:
    """Read a task directory. Builds the interpreter it names if this machine has none. Raises `BadInput`."""
    return loader.load_task(Path(path), _home(home))


def check_task(
    task: LoadedTask | Path | str, runs: int = 3, hacks: HackChoice = "sample", home: Path | str | None = None
) -> Admission:
    """Whether a task can be trusted to teach: the untouched tree fails, the reference passes, no hack is rewarded."""
    return admit(_loaded(task, home), _home(home), runs, hacks, lambda _done, _total, _next: None)


def verify_workspace(
    task: LoadedTask | Path | str,
    workspace: Path | str,
    profile: Profile = "full",
    reward: RewardKind = "layered",
    home: Path | str | None = None,
) -> Verdict:
    """Judge a workspace by the tests of a task, where nothing in the workspace can decide the outcome."""
    with Verifier(_loaded(task, home), _home(home)) as verifier:
        return verifier.verify(Path(workspace), profile, reward)


def solve_task(
    task: LoadedTask | Path | str,
    model: Model | str,
    out: Path | str,
    *,
    limits: RolloutLimits | None = None,
    sampling: Sampling | None = None,
    resume: bool = False,
    home: Path | str | None = None,
) -> SolveResult:
    """Let an agent attempt a task in a sandbox and verify what it did. Everything is kept in the directory `out`."""
    loaded = _loaded(task, home)
    scripts = {name: (lambda script=script: script(loaded)) for name, script in SCRIPTED_POLICIES.items()}
    agent = resolve_model(model, _home(home), scripts=scripts) if isinstance(model, str) else model
    request = SolveRequest(
        loaded,
        agent,
        AttemptDirectory(Path(out).absolute()),
        _home(home),
        limits=limits or RolloutLimits(),
        sampling=sampling or Sampling(),
    )
    return asyncio.run(_closing(agent, model, solve(request, resume)))


def run_episode(
    environment: Environment,
    model: Model | str,
    *,
    limits: RolloutLimits | None = None,
    sampling: Sampling | None = None,
    home: Path | str | None = None,
) -> Episode:
    """Let an agent act in an environment once, and score it. Nothing is written to disk."""
    agent = resolve_model(model, _home(home)) if isinstance(model, str) else model
    config = rollout_config_for(environment, agent, sampling or Sampling(), limits or RolloutLimits())
    return asyncio.run(_closing(agent, model, run_one_episode(environment, config)))


def mine_tasks(
    source: Path | str,
    out: Path | str,
    *,
    limit: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    resume: bool = False,
    on_status: Callable[[str], None] = lambda _status: None,
    home: Path | str | None = None,
) -> MiningSummary:
    """Make tasks from a repository with tests: a feature is deleted, its tests are the reward. They lie in `out`."""
    request = miner.MiningRequest(
        Path(source), Path(out), _home(home), limit=limit, seed=seed, jobs=jobs, resume=resume
    )
    return miner.mine(request, _StatusObserver(on_status))


def evaluate(
    suite: Path | str | Sequence[Environment],
    model: str,
    *,
    attempts: int = 1,
    k: int = 1,
    jobs: int = 16,
    seed: int = 0,
    sampling: Sampling | None = None,
    limits: RolloutLimits | None = None,
    home: Path | str | None = None,
) -> dict[str, Any]:
    """Measure a model on a directory of tasks, on `worlds:NAME` or on environments of your own: pass@k, pass^k,
    survival by step, and what a success costs."""
    settings = EvalSettings(
        attempts=attempts,
        jobs=jobs,
        seed=seed,
        sampling=sampling or Sampling(),
        limits=limits or RolloutLimits(),
    )
    return asyncio.run(_evaluate(suite, model, settings, k, _home(home)))


async def _evaluate(
    suite: Path | str | Sequence[Environment], model: str, settings: EvalSettings, k: int, home: Path
) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        if isinstance(suite, Path | str):
            items = await stack.enter_async_context(open_suite(find_tasks(str(suite), home), home))
        else:
            items = [SuiteItem(environment) for environment in suite]
        models = ModelSelector.for_items(model, home, items)
        stack.push_async_callback(models.close)
        attempts = await run_evaluation(items, models, settings, NullAttemptStore())
        return build_report(attempts, settings.attempts, k)


class _StatusObserver:
    """Passes on what mining is doing, and ignores the rest."""

    def __init__(self, on_status: Callable[[str], None]) -> None:
        self.on_status = on_status

    def on_count(self, done: int, total: int) -> None: ...

    def on_phase_start(self, phase: str, total: int, done: Sequence[dict[str, Any]]) -> None: ...

    def on_candidate_done(self, record: dict[str, Any]) -> None: ...


def _home(home: Path | str | None) -> Path:
    return home_directory(Path(home) if home is not None else None)


def _loaded(task: LoadedTask | Path | str, home: Path | str | None) -> LoadedTask:
    return task if isinstance(task, LoadedTask) else load_task(task, home)


async def _closing(agent: Model, given: Model | str, work: Coroutine[Any, Any, Result]) -> Result:
    """Do the work, and close the model if it was opened here."""
    try:
        return await work
    finally:
        if isinstance(given, str):
            await agent.close()
