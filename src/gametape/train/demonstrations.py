"""Demonstrations for a warm start: an expert's episodes in worlds, single turns that follow a hint, and, where there is
no expert, well-formed random calls.

All of them go through the same loop as policies, in the ids of the policy's own chat format, so that the imitated
tokens are exactly those that the policy would sample.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from gametape.agent.episode import Episode, rollout_config_for, run_episode
from gametape.agent.limits import RolloutLimits
from gametape.coach.hints import FIXED_HINTS
from gametape.coach.writers.choice import worded_for
from gametape.core.messages import GenerateRequest, Generation, Sampling, TokenUsage, WeightUpdate
from gametape.core.protocols import Environment, JsonObject, PolicyEngine, Tool
from gametape.core.token_segments import TokenSegment
from gametape.core.tokens import TurnTokens
from gametape.engines.chat_formats.protocol import ChatFormat, insert_hint
from gametape.engines.conversation import Call
from gametape.engines.token_conversation import TokenModel
from gametape.tasks.worlds.experts import Expert, ExpertTurn, script_episode
from gametape.tasks.worlds.plan import WorldAction
from gametape.tasks.worlds.rules import DEMANDS, PRACTICE_MARKINGS, SHARED_RULES, rule_text
from gametape.tasks.worlds.tools import action_arguments
from gametape.tasks.worlds.world import World

_WINDOW = 1 << 20
GENERAL = (*sorted(FIXED_HINTS), "avoid : no such name", "avoid : no value")
"""Hints that do not name the object of the turn."""


@dataclass(frozen=True)
class Demonstration:
    """An expert's episode: its action for each job, and the loop's record."""

    acts: Sequence[ExpertTurn]
    episode: Episode


@dataclass(frozen=True)
class _ScriptedPolicy(PolicyEngine):
    """Answers the n-th request with the n-th turn."""

    turns: Sequence[list[int]]

    async def generate(self, request: GenerateRequest) -> Generation:
        ids = self.turns[request.turn]
        return Generation(
            request_id=request.request_id,
            completion_ids=ids,
            logprobs=[0.0] * len(ids),
            policy_versions=[0] * len(ids),
            finish="stop",
            usage=TokenUsage(prompt_tokens=len(request.prompt_ids), completion_tokens=len(ids)),
        )

    async def update_weights(self, update: WeightUpdate) -> None:
        raise NotImplementedError("a scripted policy has no weights")

    async def policy_version(self) -> int:
        return 0


async def demonstrate(world: World, expert: Expert, chat_format: ChatFormat, seed: int = 0) -> Demonstration:
    """An expert's episode in a world; the segments of its steps are what to imitate."""
    acts = script_episode(world, expert, seed)
    return Demonstration(acts, await _run_script(world, expert_policy(acts, chat_format), len(acts)))


async def _run_script(environment: Environment, model: TokenModel, turns: int) -> Episode:
    return await run_episode(
        environment, rollout_config_for(environment, model, Sampling(), RolloutLimits(turns=turns))
    )


def scripted_policy(turns: Sequence[list[int]], chat_format: ChatFormat) -> TokenModel:
    """A model that answers the n-th request with the n-th turn."""
    return TokenModel("expert", _ScriptedPolicy(turns), chat_format, _WINDOW)


def expert_policy(acts: Sequence[ExpertTurn], chat_format: ChatFormat) -> TokenModel:
    """A model that repeats an expert's actions."""
    return scripted_policy([_encode_action(chat_format, act.action) for act in acts], chat_format)


async def random_episode(
    environment: Environment, words: Sequence[str], chat_format: ChatFormat, rng: Random
) -> Episode:
    """An episode of well-formed random calls: it shows how tools are called, and not which calls are right."""
    tools = environment.tools()
    calls = [random_call(rng.choice(tools), words, rng) for _ in range(environment.max_turns)]
    model = scripted_policy([chat_format.encode_call(call) for call in calls], chat_format)
    return await _run_script(environment, model, len(calls))


def random_call(tool: Tool, words: Sequence[str], rng: Random) -> Call:
    """Values come from the schema of an argument where it lists them, else from `words`."""
    return Call(
        tool.name,
        {name: rng.choice(argument_values(schema) or [*words, "0"]) for name, schema in argument_schemas(tool).items()},
    )


def argument_schemas(tool: Tool) -> Mapping[str, JsonObject]:
    parameters = tool.definition.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    return properties if isinstance(properties, dict) else {}


def argument_values(schema: JsonObject) -> list[str]:
    """The values that the JSON schema of an argument lists, one word each; none where it does not list them."""
    listed, low, high = schema.get("enum"), schema.get("minimum"), schema.get("maximum")
    values: Iterable[object] = ()
    if isinstance(listed, list):
        values = listed
    elif schema.get("type") == "boolean":
        values = ("true", "false")
    elif isinstance(low, int) and isinstance(high, int):
        values = range(low, high + 1)
    return [str(value) for value in values]


def hinted_turns(
    demonstration: Demonstration, chat_format: ChatFormat, rng: Random, made_up: float = 0.0
) -> list[TokenSegment]:
    """For each turn a hint, inserted before it, and the call that obeys it. Only the call is imitated.

    At a marked object the hint is a rule made up anew each time, so that only reading helps. At others the hint
    changes nothing: the convention, a rule for other objects, or something general. No hint names a shared rule;
    where one applies, the hint is a general one and the call is the expert's, except for a share of `made_up`, in which
    the hint is any other rule.
    """
    turns = [step.tokens() for step in demonstration.episode.steps if step.source == "agent"]
    pairs = zip(demonstration.acts, turns, strict=True)
    return [_hinted(turn, chat_format, *_practice_hint(act, rng, made_up)) for act, turn in pairs if turn is not None]


def _practice_hint(act: ExpertTurn, rng: Random, made_up: float) -> tuple[str, WorldAction]:
    """A hint, and the action that follows it."""
    job, demand = act.job, rng.choice(DEMANDS)
    if job.marking in SHARED_RULES:
        if not made_up or rng.random() >= made_up:
            return rng.choice(GENERAL), act.action
        demand = rng.choice([other for other in DEMANDS if other != SHARED_RULES[job.marking]])
    if job.marking:
        return job.hint(demand), job.action_for(demand)
    convention = f"rule : {rule_text('plain', job.kind, job.default_action.tool)}"
    elsewhere = f"rule : {rule_text(rng.choice(PRACTICE_MARKINGS), job.kind, demand)}"
    return rng.choice((convention, elsewhere, rng.choice(GENERAL))), job.correct_action


def _hinted(turn: TurnTokens, chat_format: ChatFormat, hint: str, action: WorldAction) -> TokenSegment:
    return hinted_call(turn, chat_format, worded_for(chat_format, hint), _as_call(action))


def hinted_call(turn: TurnTokens, chat_format: ChatFormat, hint: str, call: Call) -> TokenSegment:
    """A turn once more, with a hint before it and the call that obeys it, which alone is imitated."""
    prompt = insert_hint(chat_format, turn.prompt_ids, hint)
    completion_ids = chat_format.encode_call(call)
    segment = TokenSegment()
    segment.append_turn(
        TurnTokens(prompt_ids=prompt, completion_ids=completion_ids, loss_mask=[1] * len(completion_ids)),
        step=1,
        copied=False,
    )
    return segment


def _encode_action(chat_format: ChatFormat, action: WorldAction) -> list[int]:
    return chat_format.encode_call(_as_call(action))


def _as_call(action: WorldAction) -> Call:
    return Call(action.tool, action_arguments(action))
