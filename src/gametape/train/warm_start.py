"""The warm start of a tiny policy: its vocabulary, and supervised learning before any reward.

In worlds it learns from lessons (`lessons.py`), in other environments how tools are called, from calls at random. Other
policies have a warm start as an arm of its own (`algorithms/warm.py`).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from gametape.agent.tool_router import crashed_call
from gametape.core.config import OptimConfig, RunConfig, WarmStartConfig
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import Tool, Workspace
from gametape.core.seeds import seed_for
from gametape.core.token_segments import TokenSegment, split_segments
from gametape.tasks.worlds.memory import MemoryPair
from gametape.train.algorithms.sft import Sft
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.demonstrations import argument_schemas, argument_values, random_call, random_episode
from gametape.train.early_checks import TINY_KNOWS_WORLDS
from gametape.train.learner import LocalLearner
from gametape.train.lessons import pair_lesson, world_lesson
from gametape.train.policy import TrainablePolicy, WordLanguage
from gametape.train.prompts import EnvironmentDataset, PromptDataset, WorldPromptDataset
from gametape.train.update_metrics import UpdateMetrics

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
) -> Sequence[TokenSegment]:
    rng = Random(seed)
    if isinstance(dataset, WorldPromptDataset):
        spec = rng.choice(dataset.specs).model_copy(update={"seed": seed, "split": "train"})
        if dataset.pairs:
            return (await pair_lesson(MemoryPair(spec), policy.chat_format, warm, rng)).segments
        return (await world_lesson(spec, policy.chat_format, warm, rng)).segments
    assert isinstance(dataset, EnvironmentDataset)
    episode = await random_episode(dataset.environment(seed), dataset.words, policy.chat_format, rng)
    return split_segments(episode.steps)
