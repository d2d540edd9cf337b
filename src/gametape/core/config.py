"""The configuration of a training run: the knobs that are settled, with their defaults."""

from typing import Annotated, Literal

from pydantic import Field

from gametape.core.model import Closed, Fraction

Arm = Literal["sft", "rejection", "rlvr", "rlvr_ttf", "rlvr_ttf_gated"]

Positive = Annotated[float, Field(gt=0)]
AtLeastOne = Annotated[int, Field(ge=1)]


class RLConfig(Closed):
    """The group-relative policy gradient on verified rewards."""

    group_size: Annotated[int, Field(ge=2)] = 8
    loss: Literal["clip", "cispo"] = "clip"
    clip_low: Positive = 0.2
    clip_high: Positive = 0.28
    importance_cap: Positive = 2.0
    max_staleness: Annotated[int, Field(ge=2, le=8)] = 4
    retire_pass_rate: Fraction = 0.9
    retire_samples: AtLeastOne = 24
    replay_share: Fraction = 0.05


class TTFConfig(Closed):
    """Distillation of a hinted teacher on the target spans.

    `beta` weighs forward against reverse KL, `gamma` is the decay after each disagreement, `weight` the
    constant factor of the term.
    """

    weight: Annotated[float, Field(ge=0)] = 0.1
    beta: Fraction = 0.7
    gamma: Fraction = 0.5
    teacher: Literal["ema", "start", "current"] = "ema"


class GateConfig(Closed):
    """When the verified gate G2 believes that a type of hint helps."""

    min_forks: AtLeastOne = 32
    min_posterior: Fraction = 0.95


class RunConfig(Closed):
    """One run: which arm, from which weights, on which tasks."""

    schema_version: Literal["run-v1"] = "run-v1"
    arm: Arm
    model: str
    tasks: str
    seed: Annotated[int, Field(ge=0)] = 0
    learning_rate: Positive = 3e-4
    rl: RLConfig = RLConfig()
    ttf: TTFConfig = TTFConfig()
    gates: GateConfig = GateConfig()

    @property
    def uses_rl(self) -> bool:
        return self.arm.startswith("rlvr")

    @property
    def uses_ttf(self) -> bool:
        return self.arm in ("rlvr_ttf", "rlvr_ttf_gated")

    @property
    def gated(self) -> bool:
        return self.arm == "rlvr_ttf_gated"
