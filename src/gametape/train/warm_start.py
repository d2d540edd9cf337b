"""The warm start of a tiny policy: its vocabulary, and supervised learning before any reward.

In worlds it learns from a noisy expert's episodes and from single turns that follow a hint. The expert keeps to the
rules under test as seldom as their worlds' base rate says, and no hint ever names one of them: hints are read by
practice on rules that hold in one world only, or that are made up on the spot. In other environments it learns how
tools are called, from calls at random.
"""

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from gametape.agent.tool_router import crashed_call
from gametape.core.config import OptimConfig, RunConfig, WarmStartConfig
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import Tool, Workspace
from gametape.core.seeds import seed_for
from gametape.core.token_segments import TokenSegment, split_segments
from gametape.engines.chat_formats.protocol import ChatFormat
from gametape.tasks.worlds.experts import NoisyExpert
from gametape.tasks.worlds.memory import MemoryPair, forgetful_expert
from gametape.tasks.worlds.rules import PRACTICE_MARKINGS
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.world import World
from gametape.train.algorithms.sft import Sft
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.demonstrations import (
    argument_schemas,
    argument_values,
    demonstrate,
    hinted_turns,
    random_call,
    random_episode,
)
from gametape.train.early_checks import TINY_KNOWS_WORLDS
from gametape.train.learner import LocalLearner
from gametape.train.policy import TrainablePolicy, WordLanguage
from gametape.train.prompts import EnvironmentDataset, PromptDataset, WorldPromptDataset
from gametape.train.update_metrics import UpdateMetrics

_RULE_TURN_EVERY = 3
"""One in so many turns of an ordinary world is under a rule, whatever the share is in the worlds of the run: with fewer
the base rate would be learned late, with more everything else."""
_HINTED = 4
"""Turns of an ordinary world that are also trained with a hint, where hints change nothing."""
_EXPLORED_EPISODES = 64
"""Episodes of random calls that collect the words of an environment."""
_HARNESS_WORDS = "error : no end such tool too many words"
WarmStartCallback = Callable[[int, int, UpdateMetrics], None]


async def tiny_language(dataset: PromptDataset) -> WordLanguage | None:
    """None for worlds, whose vocabulary is fixed; for other environments, the words that random calls show."""
    if isinstance(dataset, WorldPromptDataset):
        return None
    if not isinstance(dataset, EnvironmentDataset):
        raise BadInput(TINY_KNOWS_WORLDS)
    texts = [_HARNESS_WORDS, *dataset.words]
    signatures: dict[str, list[str]] = {}
    for number in range(_EXPLORED_EPISODES):
        seed = seed_for(dataset.seed, "words", number)
        environment = dataset.environment(seed)
        tools = environment.tools()
        for tool in tools:
            schemas = argument_schemas(tool)
            signatures[tool.name] = list(schemas)
            texts += [tool.name, *(value for schema in schemas.values() for value in argument_values(schema))]
        texts += [environment.user_prompt, dataset.held_out(number).environment.user_prompt]
        rng, workspace = Random(seed), await environment.reset()
        try:
            for _ in range(environment.max_turns):
                tool = rng.choice(tools)
                result = await _call(tool, random_call(tool, dataset.words, rng).arguments, workspace)
                texts.append(result.content)
                if result.finished:
                    break
        finally:
            await workspace.close()
    return WordLanguage(list(dict.fromkeys(word for text in texts for word in text.split())), signatures)


async def _call(tool: Tool, arguments: Mapping[str, Any], workspace: Workspace) -> ToolResult:
    """The answer that a policy would get: a tool that breaks is an answer too."""
    try:
        return await tool.call(dict(arguments), workspace)
    except Exception as error:  # whatever a tool of the user's own raises
        return crashed_call(tool.name, error)


async def warm_start(
    policy: TrainablePolicy, dataset: PromptDataset, config: RunConfig, on_update: WarmStartCallback
) -> None:
    """Train a new policy, in place. `on_update` is called after each update: its number, the total, its metrics."""
    warm = config.warm
    updates = -(-warm.episodes // warm.batch)
    optim = OptimConfig(
        name=warm.optimizer, learning_rate=warm.learning_rate, schedule="cosine", warmup=min(20, updates // 10)
    )
    rl = config.rl.model_copy(update={"minibatches": 1, "epochs": 1})
    config = config.model_copy(update={"optim": optim, "rl": rl, "algorithm": {}})
    learner = LocalLearner(policy, config, Sft(config))
    total = updates * warm.epochs
    for number in range(total):
        batch = await _batch(policy, dataset, config, number % updates)
        on_update(number + 1, total, learner.update(batch, number, version=0, spent=number / total))
        await asyncio.sleep(0)  # nothing else here awaits, and Ctrl-C is handled only at an await


async def _batch(policy: TrainablePolicy, dataset: PromptDataset, config: RunConfig, number: int) -> TrainBatch:
    """The segments of some demonstrations; those of one share a prompt number."""
    warm = config.warm
    samples: list[TrainSample] = []
    for prompt, at in enumerate(range(number * warm.batch, (number + 1) * warm.batch)):
        segments = await _segments(policy, dataset, warm, seed_for(config.seed, "warm start", at))
        samples += [TrainSample(segment, prompt, sft_weight=1.0) for segment in segments]
    return TrainBatch(tuple(samples), rollouts=len(samples))


async def _segments(
    policy: TrainablePolicy, dataset: PromptDataset, warm: WarmStartConfig, seed: int
) -> list[TokenSegment]:
    rng = Random(seed)
    if isinstance(dataset, WorldPromptDataset):
        spec = rng.choice(dataset.specs).model_copy(update={"seed": seed, "split": "train"})
        if dataset.pairs:
            return await _pair_segments(MemoryPair(spec), policy.chat_format, warm, rng)
        if rng.random() < warm.hint_share:
            return await _practice_segments(spec, policy.chat_format, warm, rng)
        return await _demonstration_segments(spec, policy.chat_format, warm, rng)
    assert isinstance(dataset, EnvironmentDataset)
    episode = await random_episode(dataset.environment(seed), dataset.words, policy.chat_format, rng)
    return split_segments(episode.steps)


async def _demonstration_segments(
    spec: WorldSpec, chat_format: ChatFormat, warm: WarmStartConfig, rng: Random
) -> list[TokenSegment]:
    marked = spec.horizon // _RULE_TURN_EVERY if spec.load_bearing else 0
    spec = spec.model_copy(update={"load_bearing": marked})
    demonstration = await demonstrate(
        World(spec), NoisyExpert(warm.ordinary_rate, spec.base_rate), chat_format, spec.seed
    )
    hinted = hinted_turns(demonstration, chat_format, rng, warm.made_up_hint_share) if warm.hint_share else []
    return [*split_segments(demonstration.episode.steps), *rng.sample(hinted, min(_HINTED, len(hinted)))]


async def _pair_segments(
    pair: MemoryPair, chat_format: ChatFormat, warm: WarmStartConfig, rng: Random
) -> list[TokenSegment]:
    """The writer's episode, whose note is as seldom right as the base rate says, or that of a reader of a right one."""
    spec = pair.spec
    if rng.random() < 0.5:
        expert = forgetful_expert(warm.ordinary_rate, spec.base_rate)
        demonstration = await demonstrate(pair.writer, expert, chat_format, spec.seed)
    else:
        reader = pair.reader(pair.note)
        demonstration = await demonstrate(
            reader, NoisyExpert(warm.ordinary_rate, spec.base_rate), chat_format, spec.seed
        )
    return split_segments(demonstration.episode.steps)


async def _practice_segments(
    spec: WorldSpec, chat_format: ChatFormat, warm: WarmStartConfig, rng: Random
) -> list[TokenSegment]:
    """A world of made-up rules that the expert does not know: it breaks them, unless a hint names them."""
    marked = min(spec.horizon, 8)
    update = {"hints": "instance", "rules": PRACTICE_MARKINGS, "load_bearing": marked, "split": "all"}
    practice = World(spec.model_copy(update=update))
    demonstration = await demonstrate(practice, NoisyExpert(warm.ordinary_rate, 0.0), chat_format, spec.seed)
    return [*split_segments(demonstration.episode.steps), *hinted_turns(demonstration, chat_format, rng)]
