"""Algorithms: each arm has its own, and one of your own trains on an environment of your own."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from gametape.core.config import RunConfig
from gametape.core.config_section import ConfigSection
from gametape.core.environment import EpisodeScore
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import JsonObject, Tool, Workspace
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.workspace import WorldWorkspace
from gametape.tasks.worlds.world import World
from gametape.train.algorithms import make_algorithm
from gametape.train.algorithms.base import Algorithm
from gametape.train.algorithms.rlvr import Rlvr
from gametape.train.algorithms.ttf import GatedTtf, Ttf
from gametape.train.prompts import EnvironmentDataset
from gametape.train.rollouts import RolloutGroup
from gametape.train.training import run_training


@pytest.mark.parametrize(
    ("arm", "compares", "samples", "ttf", "gated"),
    [
        ("warm", False, False, False, False),
        ("sft", False, False, False, False),
        ("rejection", False, True, False, False),
        ("rlvr", True, True, False, False),
        ("rlvr_ttf", True, True, True, False),
        ("rlvr_ttf_gated", True, True, True, True),
    ],
)
def test_an_arm_says_what_it_needs(arm: str, compares: bool, samples: bool, ttf: bool, gated: bool) -> None:
    algorithm = make_algorithm(RunConfig(arm=arm, tasks="worlds:easy"))
    assert (algorithm.compares_rollouts, algorithm.samples_policy) == (compares, samples)
    assert (isinstance(algorithm, Ttf), isinstance(algorithm, GatedTtf)) == (ttf, gated)


class BonusSettings(ConfigSection):
    bonus: float = 0.0


class RewardAsAdvantage(Algorithm):
    Settings = BonusSettings

    def score_group(self, group: RolloutGroup) -> dict[int, float]:
        return {index: result.reward - 0.5 for index, result in enumerate(group.results)}


def test_an_arm_may_be_a_class_of_another_module() -> None:
    config = RunConfig(arm=f"{__name__}:RewardAsAdvantage", tasks="worlds:easy", algorithm={"bonus": 0.5})
    algorithm = make_algorithm(config)
    assert isinstance(algorithm, RewardAsAdvantage)
    assert algorithm.settings == BonusSettings(bonus=0.5)
    for arm, reason in ((f"{__name__}:WorldSpec", "no class WorldSpec"), ("no.such:Thing", "must be importable")):
        with pytest.raises(BadInput, match=reason):
            make_algorithm(RunConfig(arm=arm, tasks="worlds:easy"))


class PickTool:
    name = "pick"
    definition: ClassVar[JsonObject] = {
        "name": "pick",
        "description": "Pick a colour.",
        "parameters": {"type": "object", "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}}},
    }

    async def call(self, arguments: JsonObject, workspace: Workspace) -> ToolResult:
        assert isinstance(workspace, PickWorkspace)
        workspace.picked = str(arguments.get("colour"))
        return ToolResult(content="picked", finished=True)


class PickWorkspace(WorldWorkspace):
    picked = ""


class PickEnvironment:
    """The right colour is always blue."""

    bucket = "pick"
    system_prompt = "Pick the colour."
    max_turns = 2

    def __init__(self, seed: int) -> None:
        self.colour = ("red", "blue")[seed % 2]
        self.name = f"pick-{self.colour}"
        self.user_prompt = f"pick {self.colour}"

    def tools(self) -> Sequence[Tool]:
        return [PickTool()]

    async def reset(self) -> Workspace:
        world = World(WorldSpec())
        return PickWorkspace(world.spec, world.plan)

    async def score(self, workspace: Workspace) -> EpisodeScore:
        assert isinstance(workspace, PickWorkspace)
        passed = workspace.picked == "blue"
        return EpisodeScore(passed, float(passed))


@pytest.mark.parametrize("algorithm", [Rlvr, RewardAsAdvantage])
def test_an_environment_of_your_own_is_learned(tmp_path: Path, algorithm: type[Algorithm]) -> None:
    config = RunConfig.model_validate(
        {
            "arm": "rlvr",
            "tasks": "pick",
            "episodes": 512,
            "tiny": {"layers": 1, "width": 32, "heads": 2, "window": 64},
            "warm": {"episodes": 512, "batch": 16, "learning_rate": 0.01},
            "optim": {"learning_rate": 0.01},
            "rl": {"groups": 4, "group_size": 8, "turn_tokens": 4, "normalizer_tokens": 4},
            "eval": {"every": 0, "episodes": 32},
        }
    )
    answer = run_training(config, tmp_path / "run", dataset=EnvironmentDataset(PickEnvironment), algorithm=algorithm)
    assert answer["success_after"] > answer["success_before"] + 0.2
