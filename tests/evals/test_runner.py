"""A suite runs through the real loop, many attempts at once, and is resumed where it ended."""

import asyncio
import json
from pathlib import Path

import pytest

from gametape.agent.limits import RolloutLimits
from gametape.core.environment import EpisodeScore
from gametape.core.errors import BadInput
from gametape.core.messages import GenerateRequest, Generation
from gametape.core.protocols import Workspace
from gametape.engines.conversation import Model
from gametape.engines.errors import EngineError
from gametape.engines.scripted import ScriptedEngine, scripted_model
from gametape.engines.token_conversation import TokenModel
from gametape.evals.attempt import EvalAttempt
from gametape.evals.attempt_log import ATTEMPTS_FILE, AttemptLog
from gametape.evals.episode_file import save_episode
from gametape.evals.mistakes import derailed_at
from gametape.evals.model_selector import ModelSelector
from gametape.evals.runner import EvalSettings, NullAttemptStore, evaluate
from gametape.evals.suite import SuiteItem, item_from_world
from gametape.record.trajectory_file import load_trajectory
from gametape.sandbox.keeper_client import SandboxError
from gametape.tasks.worlds.suite import preset_worlds
from gametape.tasks.worlds.world import World

GOLDEN = Path(__file__).parent / "golden/attempts.jsonl"
ITEMS = [item_from_world(world) for world in preset_worlds("worlds:moderate", 6, seed=3)]


def run_suite(
    name: str, settings: EvalSettings, log: AttemptLog | NullAttemptStore | None = None, items: list[SuiteItem] = ITEMS
) -> list[EvalAttempt]:
    async def run() -> list[EvalAttempt]:
        return await evaluate(
            items, ModelSelector.for_items(name, Path("/nowhere"), items), settings, log or NullAttemptStore()
        )

    return asyncio.run(run())


def test_an_expert_passes_everything_and_a_clumsy_one_derails_where_it_erred() -> None:
    good = run_suite("scripted:expert", EvalSettings(attempts=2))
    assert len(good) == 12
    assert all(attempt.passed and attempt.horizon == 12 for attempt in good)
    assert not any(turn.mistaken for attempt in good for turn in attempt.turns)
    assert all(sum(turn.load_bearing for turn in attempt.turns) == 1 for attempt in good)
    bad = run_suite("scripted:clumsy", EvalSettings())
    assert [(attempt.passed, derailed_at(attempt)) for attempt in bad] == [(False, 2)] * 6


def test_a_run_does_not_depend_on_how_many_are_under_way() -> None:
    def told(jobs: int) -> list[tuple[str, int, bool | None, int]]:
        found = run_suite("scripted:noisy", EvalSettings(attempts=3, jobs=jobs))
        return [(attempt.task, attempt.number, attempt.passed, attempt.tokens) for attempt in found]

    assert told(1) == told(7)
    assert len({passed for _, _, passed, _ in told(3)}) == 2


def test_attempts_that_never_wait_can_be_cancelled() -> None:
    ended: list[EvalAttempt] = []

    async def run() -> None:
        def count(attempt: EvalAttempt) -> None:
            ended.append(attempt)
            if len(ended) == 3:
                running.cancel()

        models = ModelSelector.for_items("scripted:expert", Path("/nowhere"), ITEMS)
        settings = EvalSettings(attempts=50, jobs=2)
        running = asyncio.ensure_future(evaluate(ITEMS, models, settings, NullAttemptStore(), count))
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(run())
    assert len(ended) < 20


class Refusing(ScriptedEngine):
    """Fails every second question."""

    asked = 0

    async def generate(self, request: GenerateRequest) -> Generation:
        self.asked += 1
        if self.asked % 2 == 0:
            raise EngineError("server_error", "no")
        return await super().generate(request)


class SameModel:
    """The same model for every item."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def model_for(self, item: SuiteItem, number: int) -> Model:
        return self._model


def test_a_broken_engine_or_sandbox_says_nothing_about_the_policy(tmp_path: Path) -> None:
    model = scripted_model("x", [])
    broken = TokenModel(name="x", engine=Refusing([]), chat_format=model.chat_format, window=model.window)

    class NoWorkspace(World):
        async def reset(self) -> Workspace:
            raise SandboxError("no sandbox today")

    class NoScore(World):
        async def score(self, workspace: Workspace) -> EpisodeScore:
            raise SandboxError("no verdict today")

    spec = preset_worlds("worlds:easy", 1)[0].spec
    items = [SuiteItem(NoWorkspace(spec)), SuiteItem(NoScore(spec))]
    found = asyncio.run(evaluate(items, SameModel(scripted_model("x", [])), EvalSettings(), NullAttemptStore()))
    assert [(attempt.outcome, attempt.passed) for attempt in found] == [("error", None)] * 2
    with AttemptLog.open(tmp_path / "run", {}, resume=False) as log:
        first = asyncio.run(evaluate(ITEMS[:2], SameModel(broken), EvalSettings(jobs=1), log))
        assert [attempt.passed for attempt in first] == [None, None]
    with AttemptLog.open(tmp_path / "run", {}, resume=True) as log:
        assert all(attempt.passed for attempt in run_suite("scripted:expert", EvalSettings(), log, ITEMS[:2]))


def test_finished_attempts_are_not_run_again(tmp_path: Path) -> None:
    with AttemptLog.open(tmp_path / "run", {"seed": 1}, resume=False) as log:
        run_suite("scripted:noisy", EvalSettings(attempts=1), log)
    file = tmp_path / "run" / ATTEMPTS_FILE
    file.write_bytes(file.read_bytes() + b'{"task": "torn')
    with AttemptLog.open(tmp_path / "run", {"seed": 1}, resume=True) as log:
        again = run_suite("scripted:noisy", EvalSettings(attempts=3), log)
    assert len(file.read_text().splitlines()) == 1 + 3 * len(ITEMS)
    whole = run_suite("scripted:noisy", EvalSettings(attempts=3))
    assert [attempt.model_copy(update={"seconds": 0.0}) for attempt in again] == [
        attempt.model_copy(update={"seconds": 0.0}) for attempt in whole
    ]


def test_a_run_is_resumed_as_it_was_begun_and_by_one_process(tmp_path: Path) -> None:
    with AttemptLog.open(tmp_path / "run", {"seed": 0}, resume=False):
        pass  # ended before its first attempt
    with AttemptLog.open(tmp_path / "run", {"seed": 1}, resume=False) as log:
        log.add(EvalAttempt(task="a", outcome="failed", passed=False))
        with pytest.raises(BadInput, match="another process"):
            AttemptLog.open(tmp_path / "run", {"seed": 1}, resume=True)
    with pytest.raises(BadInput, match="--resume"):
        AttemptLog.open(tmp_path / "run", {"seed": 1}, resume=False)
    with pytest.raises(BadInput, match="seed 1, not 2"):
        AttemptLog.open(tmp_path / "run", {"seed": 2}, resume=True)
    (tmp_path / "run" / ATTEMPTS_FILE).write_text('{"gametape_eval": 1, "seed": 1}\nnot json\n')
    with pytest.raises(BadInput, match="line 2: not JSON"):
        AttemptLog.open(tmp_path / "run", {"seed": 1}, resume=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(BadInput, match="not empty"):
        AttemptLog.open(tmp_path / "other", {}, resume=True)


def test_attempts_that_an_earlier_version_wrote_are_read(tmp_path: Path) -> None:
    """Its lines say `cell` for the bucket and `right` for whether a turn was correct."""
    lines = GOLDEN.read_text().splitlines()
    (tmp_path / ATTEMPTS_FILE).write_text("\n".join(lines) + "\n")
    settings = {key: value for key, value in json.loads(lines[0]).items() if key != "gametape_eval"}
    with AttemptLog.open(tmp_path, settings, resume=True) as log:
        attempt = log.finished("world-any-h8-m1-p0.5-d0-shared-all-93543916551078", 0)
        assert attempt is not None
        assert (attempt.bucket, derailed_at(attempt)) == ("any-h8-m1-p0.5-d0-shared-all", 2)
        again = attempt.model_copy(update={"number": 1})
        log.add(again)
    with AttemptLog.open(tmp_path, settings, resume=True) as log:
        assert log.finished(attempt.task, 1) == again


def test_a_rollout_that_is_kept_is_a_trajectory_that_says_the_same(tmp_path: Path) -> None:
    async def run() -> list[EvalAttempt]:
        selector = ModelSelector.for_items("scripted:clumsy", tmp_path, ITEMS[:1])
        keep = lambda done, model, number: save_episode(done, model, number, tmp_path)  # noqa: E731
        return await evaluate(ITEMS[:1], selector, EvalSettings(), NullAttemptStore(), on_episode=keep)

    (attempt,) = asyncio.run(run())
    (file,) = tmp_path.glob("*.json")
    record = load_trajectory(file)
    assert (record.outcome, record.tokens_exact(), record.mask_ok()) == ("failed", True, True)
    assert record.extra is not None
    assert (record.extra["task"], record.turns) == (attempt.task, len(attempt.turns))


def test_a_directory_of_weights_plays_many_worlds_through_one_engine(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from gametape.core.config import TinyConfig
    from gametape.train.policy import create_tiny_policy

    create_tiny_policy(tmp_path, TinyConfig(width=32, layers=1, heads=2), seed=0)

    async def run() -> list[EvalAttempt]:
        selector = ModelSelector.for_items(str(tmp_path), tmp_path, ITEMS)
        settings = EvalSettings(attempts=2, jobs=4, limits=RolloutLimits(turn_tokens=6, turns=4))
        try:
            return await evaluate(ITEMS[:2], selector, settings, NullAttemptStore())
        finally:
            await selector.close()

    found = asyncio.run(run())
    assert [attempt.passed for attempt in found] == [False] * 4
    assert all(attempt.written_tokens > 0 and attempt.turns for attempt in found)
