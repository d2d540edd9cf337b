"""The configuration of a training run: every option, its default and what it is for.

`gametape train --defaults` prints this as a TOML file with comments.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from gametape.core.base_model import Fraction
from gametape.core.cluster_config import ClusterConfig
from gametape.core.config_document import with_current_keys, with_defaults_by_model
from gametape.core.config_section import AtLeastOne, AtLeastZero, ConfigSection, Natural, Positive
from gametape.core.observation_config import AlarmConfig, CheckpointConfig, EvalConfig, IntervalUnit, WatchConfig

BuiltInArm = Literal[
    "sft",
    "rejection",
    "rlvr",
    "rlvr_ttf",
    "rlvr_ttf_gated",
    "rlvr_opsd",
    "rlvr_turn_reward",
    "rlvr_hinted_rollouts",
    "warm",
]


def _names_a_class(arm: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", arm):
        raise ValueError("MODULE:CLASS, which names an algorithm of your own")
    return arm


Arm = BuiltInArm | Annotated[str, AfterValidator(_names_a_class)]

OptimizerName = Literal["adamw", "muon"]
DeviceName = Literal["auto", "cpu", "cuda"]
DtypeName = Literal["auto", "float32", "bfloat16"]


class TinyConfig(ConfigSection):
    """The shape of the policy that `model = "tiny"` makes."""

    layers: Annotated[int, Field(ge=1, le=32)] = 3
    width: Annotated[int, Field(ge=16, le=1024)] = 96
    heads: AtLeastOne = 4
    window: Annotated[int, Field(ge=64, le=1 << 14)] = 1024
    """The context length in tokens, prompt and completion together."""


class WarmStartConfig(ConfigSection):
    """The warm start of a tiny policy: supervised, on traces of a noisy expert, some of whose turns follow a hint.
    Other policies have it as a run of its own, with the arm `warm`."""

    episodes: Natural = 4000
    """Demonstrations; 0 leaves the weights as they are."""
    batch: AtLeastOne = 32
    """Demonstrations in one update."""
    epochs: AtLeastOne = 1
    optimizer: OptimizerName = "adamw"
    learning_rate: Positive = 2e-3
    ordinary_rate: Fraction = 0.99
    """How often the expert is right where no rule under test applies."""
    hint_share: Fraction = 0.5
    """The share of turns with a hint before them that is followed. No hint names a rule under test."""
    fault_share: Fraction = 0.4
    """In tasks with tools: how often the expert of the arm `warm` makes a fault on the way to a file."""
    made_up_hint_share: Fraction = 0.0
    """Where a rule under test applies: the share of followed hints that name a made-up rule, never the right one.
    With 0 a policy learns to ignore hints there."""


class OptimConfig(ConfigSection):
    """The optimiser and its learning rate."""

    name: OptimizerName = "adamw"
    learning_rate: Positive = 3e-4
    """For tiny policies; 5e-6 for others."""
    weight_decay: AtLeastZero = 0.0
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup: Natural = 0
    """Updates over which the learning rate rises from nothing. For tiny policies; 10 for others."""
    clip_norm: Positive = 1.0
    """The gradient is scaled down to this norm."""
    micro_batch_tokens: AtLeastOne = 16384
    """Tokens in one pass; a larger batch is accumulated over several."""
    compile_layers: Literal["auto", "on", "off"] = "auto"
    """Compile the layers of the network, which takes a minute at the start. auto: with one rank on a GPU."""


class LoraConfig(ConfigSection):
    """Low-rank adapters on all linear layers in place of training all weights. The start of the run, and a teacher that
    is the start, then cost no memory."""

    rank: Natural = 0
    """0 trains all weights; 8 to 64 is usual."""
    alpha: Positive = 32.0
    """The adapter's output is scaled by this over the rank. Take a learning rate about ten times as high as for all
    weights."""


class MemoryConfig(ConfigSection):
    """What is kept in memory, and what is computed again. None of it changes what is learned."""

    recompute: Literal["auto", "on", "off"] = "auto"
    """Compute layers again in the backward instead of keeping what they computed. auto: from 20 million parameters."""
    measure_start: bool = True
    """Keep the weights that the run began with, to measure in every fourth update how far the policy has gone. Adapters
    have them anyway, and an anchor (`ttf.anchor`) needs them."""
    offload: bool = False
    """Keep weights in float32, gradients and the optimiser's state in the machine's memory instead of the GPU's."""


class ContextConfig(ConfigSection):
    """The window of the policy: what it is given, sampled and trained with. Tiny policies have `tiny.window`."""

    tokens: Annotated[int, Field(ge=64, le=1 << 17)] | None = None
    """Prompt and completion together; none: the model's own. A shorter one takes less memory."""
    rope_scaling: Literal["none", "linear", "yarn"] = "none"
    """How positions beyond the model's own window are made, by a factor of `tokens` over it."""


class RLConfig(ConfigSection):
    """The group-relative policy gradient on verified rewards."""

    group_size: Annotated[int, Field(ge=2)] = 8
    """Rollouts of one prompt, which are each other's baseline."""
    groups: AtLeastOne = 8
    """Groups with a signal that an update waits for."""
    resample: Annotated[float, Field(ge=1)] = 2.0
    """Groups sampled for one update at most, as a multiple of `groups`: those without a signal are replaced."""
    advantage: Literal["loo", "dr_grpo", "grpo"] = "loo"
    """Leave-one-out mean; mean; mean and standard deviation."""
    loss: Literal["loo", "dr_grpo", "grpo", "dapo", "cispo", "gspo"] = "loo"
    clip_low: Positive = 0.2
    clip_high: Positive = 0.28
    minibatches: AtLeastOne = 1
    """Steps of the optimiser that an update divides its rollouts over. From the second step on the policy differs from
    the one at the start of the update, and clipping acts."""
    epochs: AtLeastOne = 1
    """How often an update goes over its rollouts, each time in other minibatches."""
    normalizer_tokens: AtLeastOne = 64
    """The constant number of sampled tokens that a rollout counts for, whatever its own length. For tiny policies; 2048
    for others."""
    temperature: Positive = 1.0
    turns: AtLeastOne = 64
    """The most turns of a rollout; a task may set fewer."""
    turn_tokens: AtLeastOne = 16
    """The most new tokens of a turn. For tiny policies; 1024 for others, as far as a quarter of the window allows."""
    retire_pass_rate: Fraction = 0.9
    retire_samples: AtLeastOne = 24
    """Buckets of prompts that pass this often over at least so many samples retire."""
    replay_share: Fraction = 0.05
    """The share of requests that go to retired buckets."""
    reproducible: bool = False
    """Sample in lockstep: the same seed gives the same numbers to the bit, also after a kill. All rollouts then wait
    for each tool and each verdict."""
    asynchronous: bool = False
    """Sample in a second process while this one learns."""
    max_staleness: Annotated[int, Field(ge=1, le=8)] = 4
    """Asynchronous: samples by weights more versions old than this are dropped, and counted."""
    importance_cap: Positive = 2.0
    """The bound of each token's importance weight: what the policy at the start of the update gives it over what the
    sampler gave it. With the loss `gspo` a rollout has one weight, the geometric mean of its tokens'."""


class RolloutsConfig(ConfigSection):
    """How much goes on at a time. None of it changes what is learned."""

    in_flight: AtLeastOne = 256
    """Rollouts that are open at a time; further ones wait for their turn. Reproducible runs have no such bound."""
    sandboxes: Natural = 0
    """Commands, starts and snapshots of sandboxes that run at a time; 0: two for each core."""
    verifiers: Natural = 0
    """Processes that verify; further finished rollouts wait. 0: one for every two cores."""
    deadline_seconds: Positive | None = 3600.0
    """A rollout that plays for longer is cut, scored as its last finished turn left it, and counted. Reproducible runs
    have no deadline."""


def _names_a_judge(judge: str) -> str:
    if not re.fullmatch(r"|policy|scripted:.+|openai:[^@]+@https?://.+", judge):
        raise ValueError("openai:MODEL@URL, policy or scripted:FILE")
    return judge


class TTFConfig(ConfigSection):
    """Distillation of a hinted teacher on the target spans."""

    weight: AtLeastZero = 0.3
    """The constant factor of the term."""
    beta: Fraction = 0.7
    """The weight of forward KL; the rest is reverse."""
    gamma: Fraction = 0.5
    """The factor on a position's weight for each earlier position where teacher and student disagreed."""
    kappa: Positive = 4.0
    """Divergences above this are scaled down to it; their direction stays."""
    teacher: Literal["ema", "start", "current"] = "start"
    ema: Fraction = 0.98
    """With `ema`: the share of the teacher's weights that a step of the optimiser keeps."""
    clip_norm: Positive = 0.5
    """The cap on the norm of this term's gradient, at the last hidden states."""
    normalizer_tokens: AtLeastOne = 32
    """The constant number of tokens that a rollout counts for in this term. For tiny policies; 256 for others."""
    anchor: AtLeastZero = 16.0
    """The weight of KL to the start on turns that are no target, where the start was sure."""
    hint_only_lr_scale: Fraction = 1.0
    """The learning rate of an update without any reward signal, as a share: the optimiser would make it full size."""
    prefix_gradient: bool = True
    """Whether the gradient of a target goes back through the whole rollout before it. Without it a rollout that has no
    advantage is read once, as far as its last target, and only the turns at stake go backward: a quarter to a third of
    the operations."""
    gap_reader: Literal["coach", "learner"] = "coach"
    """Who measures how much a hint still changes, by which types of hints retire. coach: two readings of each target.
    learner: nothing more, since it reads targets anyway; asynchronous runs and controls leave it to the coach."""
    annotated_per_group: AtLeastOne = 4
    """Failed rollouts of one group that the coach annotates."""
    targets_per_rollout: Natural = 0
    """Targets of one rollout that are learned from at most, drawn at random; 0: all that the coach finds."""
    annotate_mixed_groups: bool = True
    """Annotate failures of groups in which other rollouts succeeded. Without it hints are for groups that have no other
    signal, and fade as the policy succeeds."""
    replay: AtLeastZero = 4.0
    """Targets of earlier updates that an update learns from once more, without a new rollout, for each new one. For
    tiny policies; 1 for others, whose rollouts are long to read again."""
    replay_capacity: AtLeastOne = 128
    """How many of the latest targets are stored for replay."""
    objective: Literal["kl", "resample", "penalty"] = "kl"
    """What a target trains. kl: the hinted teacher's distribution at every token. resample: imitate one turn that the
    hinted policy samples. penalty: only make the wrong action less likely, without the hint."""
    judge: Annotated[str, AfterValidator(_names_a_judge)] = ""
    """Who writes hints, for models that read prose. openai:MODEL@URL: a server. policy: the policy itself, which is
    shown the failing output. scripted:FILE: its n-th line, for tests. Empty: rules alone, which also write where a
    judge has no usable line."""
    control: Literal["none", "neutral", "shuffled", "elsewhere"] = "none"
    """Control experiments. neutral: a line that says nothing. shuffled: a hint of another type. elsewhere: at a turn
    that is no target."""
    control_share: Fraction = 1.0
    """The share of hints that `control` replaces."""


class GateConfig(ConfigSection):
    """Thresholds of the gates that a hint must pass."""

    delta: AtLeastZero = 0.5
    """G0: nats by which the hint must make the error less likely, unless it changes the first choice."""
    min_forks: AtLeastOne = 32
    """G2: the least number of forks, pooled over one type of hint."""
    min_posterior: Fraction = 0.95
    """G2: the least posterior probability of a gain."""


TrackerName = Literal["tensorboard", "trackio", "wandb"]


class RewardConfig(ConfigSection):
    """What the reward is made of."""

    kind: Literal["layered", "pass_rate", "binary"] = "layered"
    """What a task's verdict is worth. layered: a weighted sum of its checks, 0.7 of it for tests. pass_rate: the share
    of tests. binary: 1 if it passed. Worlds have rewards of their own."""
    feedback_weight: AtLeastZero = 0.0
    """The weight of people's feedback, which `gametape feedback` writes into trajectories: added to the reward, or
    subtracted from it."""
    recorded_trajectories: str = ""
    """A directory of earlier trajectories of this policy, with token ids and log-probabilities; those of one task are a
    group to learn from besides. The ratio and its clip bounds are to the policy that did the work."""
    recorded_per_update: AtLeastOne = 4
    """Recorded groups that an update learns from at most."""
    recorded_uses: AtLeastOne = 4
    """How many updates learn from one recorded group."""
    recorded_max_age: AtLeastOne = 32
    """Updates after which recorded groups are left alone: the policy is another one by then."""


class RunConfig(ConfigSection):
    """One run: which arm, from which weights, on which tasks."""

    schema_version: Literal["run-v1"] = "run-v1"
    arm: Arm
    """warm: noisy demonstrations, and hints to read. sft: demonstrations alone. rejection: the policy's own successes.
    rlvr: verified rewards. rlvr_ttf: and hints. rlvr_ttf_gated: hints that passed their gates. The same hints used
    otherwise: rlvr_opsd, before the whole rollout; rlvr_turn_reward, as a penalty on the turn; rlvr_hinted_rollouts,
    in a second attempt. `module:Class` names an algorithm of your own; the module must be importable."""
    model: str = "tiny"
    """`tiny` makes one and warm-starts it; else smollm2, a directory of weights, or another run."""
    tasks: str
    """A directory of tasks, katas:FAMILY[:COUNT], kata-chains:FAMILY:FUNCTIONS[:COUNT], worlds:NAME, or a suite of
    worlds."""
    allow_shared: bool = False
    """Also take tasks in shared mode, where tests and code share a process and a verdict can be forged."""
    seed: Annotated[int, Field(ge=0)] = 0
    episodes: AtLeastOne = 4000
    """The budget: every rollout counts, resampled and dropped ones too."""
    flops: AtLeastOne | None = None
    """Another budget: operations of sampling, reading and learning together."""
    device: DeviceName = "auto"
    """auto: the GPU where there is one."""
    dtype: DtypeName = "auto"
    """What layers compute and sample in; the weights that are learned, and sums, are float32. auto: bfloat16 on a GPU,
    float32 on a CPU."""
    ranks: AtLeastOne = 1
    """Processes that learn together, each with its shards of the weights, and with a GPU of its own where there are
    some. Changes nothing but rounding."""
    replicas: AtLeastOne = 1
    """Copies of the weights that the ranks keep, each over an equal share of them (HSDP); 1 shards over all ranks."""
    track: list[TrackerName] = Field(default_factory=list)
    """Where the figures of metrics.jsonl go besides: tensorboard, trackio or wandb, each of which must be installed."""
    algorithm: dict[str, JsonValue] = Field(default_factory=dict)
    """The table of an algorithm of your own, which its `Settings` class checks. Of the built-in arms rlvr_turn_reward
    has `weight` and rlvr_hinted_rollouts `until`."""
    tiny: TinyConfig = TinyConfig()
    warm: WarmStartConfig = WarmStartConfig()
    optim: OptimConfig = OptimConfig()
    lora: LoraConfig = LoraConfig()
    memory: MemoryConfig = MemoryConfig()
    context: ContextConfig = ContextConfig()
    rl: RLConfig = RLConfig()
    rollouts: RolloutsConfig = RolloutsConfig()
    reward: RewardConfig = RewardConfig()
    ttf: TTFConfig = TTFConfig()
    gates: GateConfig = GateConfig()
    eval: EvalConfig = EvalConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    alarms: AlarmConfig = AlarmConfig()
    watch: WatchConfig = WatchConfig()
    cluster: ClusterConfig = ClusterConfig()

    @model_validator(mode="before")
    @classmethod
    def _rename_old_keys(cls, document: Any) -> Any:
        return with_defaults_by_model(with_current_keys(document)) if isinstance(document, Mapping) else document

    @model_validator(mode="after")
    def _replicas_divide_ranks(self) -> Self:
        if self.ranks % self.replicas:
            raise ValueError(f"replicas: a number that divides ranks, which is {self.ranks}, not {self.replicas}")
        return self

    @model_validator(mode="after")
    def _clock_free_if_reproducible(self) -> Self:
        """What depends on the clock cannot be the same to the bit."""
        if self.rl.reproducible and self.rl.asynchronous:
            raise ValueError("rl.reproducible or rl.asynchronous, not both: the second depends on the clock")
        if self.rl.reproducible and self.eval.interval[1] is IntervalUnit.MINUTES:
            raise ValueError("eval.every in episodes or updates with rl.reproducible: minutes depend on the clock")
        return self
