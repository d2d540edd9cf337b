"""What a model can do, found out by a few small requests: whether an agent can work with it, and what it would lack."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from gametape.core.messages import Sampling
from gametape.engines.conversation import Conversation, Model, Reply, ToolDefinition, ToolResponse
from gametape.engines.errors import ContextTooLong, EngineError
from gametape.engines.prices import FREE, Price
from gametape.engines.token_conversation import TokenModel

MAX_REQUESTS = 5
"""The most requests that one report takes."""
_TOKENS = 1024
_SYSTEM = "This is a short test of what you can do. Do exactly what you are asked, and nothing else."
_LOOK_UP: ToolDefinition = {
    "name": "look_up",
    "description": "Look up the value of a key.",
    "parameters": {
        "type": "object",
        "properties": {"key": {"type": "string", "description": "The key."}},
        "required": ["key"],
    },
}
_TWO_CALLS = 'Call the tool look_up two times in this one turn: with the key "alpha", and with the key "beta".'
_ONE_CALL = 'Call the tool look_up now, with the key "alpha".'


@dataclass
class ModelReport:
    """Each ability is true, false, or None where it does not apply; `missing` has the reason for each that is not
    there."""

    name: str
    window: int
    local: bool
    answers: bool = False
    tools: bool = False
    parallel_calls: bool = False
    tokens: bool = False
    logprobs: bool = False
    reasoning: bool = False
    streaming: bool | None = None
    caching: bool = False
    prices: dict[str, float | None] | None = None
    latency_seconds: float = 0.0
    requests: int = 0
    tokens_spent: int = 0
    cost_usd: float = 0.0
    missing: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """Whether an agent can work with it: it answers, and can call tools."""
        return self.answers and self.tools

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "usable": self.usable}

    def lacks(self, ability: str, reason: str) -> None:
        """Note why an ability is not there."""
        self.missing[ability] = reason


async def report_model(model: Model, open_reasoner: Callable[[], Model] | None = None) -> ModelReport:
    """Ask a model a few small things. `open_reasoner` opens the same model with reasoning asked for, where there is
    such a thing.

    Raises `EngineError` where the model gives no first answer; later failures are reasons in the report.
    """
    server = _inner(model)
    report = ModelReport(model.name, model.window, model.local, tokens=model.trainable, prices=_prices(server))
    await _test_answer(model, report)
    await _test_tools(model, report)
    if not report.reasoning:
        await _test_reasoning(open_reasoner, report)
    _conclude(server, report)
    return report


async def _test_answer(model: Model, report: ModelReport) -> None:
    conversation = model.start_conversation(Sampling())
    conversation.begin(_SYSTEM, [], "Answer with the one word: ready")
    reply = await _ask(conversation, report)
    report.latency_seconds = round(reply.usage.seconds, 3)
    report.answers = bool(reply.text.strip() or reply.calls)
    if not report.answers:
        cut = f" in {_TOKENS} tokens" if reply.finish == "length" else ""
        report.lacks("answers", f"the answer was empty{cut}")
    report.logprobs = reply.tokens is not None and bool(reply.tokens.logprobs)


async def _test_tools(model: Model, report: ModelReport) -> None:
    """A call or two; where none comes, it is asked once more. Then the results go back, which some servers refuse."""
    conversation = model.start_conversation(Sampling())
    conversation.begin(_SYSTEM, [_LOOK_UP], _TWO_CALLS)
    try:
        reply = await _ask(conversation, report)
        if not reply.calls:
            conversation.add_user_message(_ONE_CALL)
            reply = await _ask(conversation, report)
        if not reply.calls:
            report.lacks("tools", reply.problem or "it was asked for a call twice, and made none")
            return
        report.parallel_calls = len(reply.calls) > 1
        if not report.parallel_calls:
            report.lacks("parallel_calls", "it was asked for two calls in a turn, and made one")
        conversation.add_tool_responses([ToolResponse(call, "17") for call in reply.calls])
        await _ask(conversation, report)
        report.tools = True
    except (EngineError, ContextTooLong) as error:
        report.lacks("tools", str(error))


async def _test_reasoning(open_reasoner: Callable[[], Model] | None, report: ModelReport) -> None:
    if open_reasoner is None:
        report.lacks("reasoning", "what this model thinks is part of its text")
        return
    try:
        model = open_reasoner()
        try:
            conversation = model.start_conversation(Sampling())
            conversation.begin(_SYSTEM, [], "How many legs do three spiders and two hens have together?")
            reply = await _ask(conversation, report)
        finally:
            await model.close()
    except (EngineError, ContextTooLong) as error:
        report.lacks("reasoning", str(error))
        return
    if not report.reasoning:
        refused = next((line for line in reply.warnings if "reasoning" in line or "thinking" in line), None)
        report.lacks("reasoning", refused or "it was asked to reason, and showed none of it")


async def _ask(conversation: Conversation, report: ModelReport) -> Reply:
    reply = await conversation.ask(_TOKENS)
    usage = reply.usage
    report.requests += usage.attempts
    report.tokens_spent += usage.prompt_tokens + usage.completion_tokens
    report.cost_usd += usage.cost_usd
    report.reasoning = report.reasoning or bool(reply.reasoning or usage.reasoning_tokens)
    report.caching = report.caching or usage.cached_tokens > 0
    report.warnings += [line for line in reply.warnings if line not in report.warnings]
    return reply


def _conclude(server: Any, report: ModelReport) -> None:
    if not isinstance(server, TokenModel):
        report.streaming = True  # every protocol streams, and an answer that is not streamed is an error
    else:
        report.lacks("streaming", "it runs in this process")
    if not report.tokens:
        report.lacks("tokens", str(getattr(server, "why_not_trainable", None) or "it takes messages only"))
    if not report.logprobs:
        reason = "the ids that were sampled are not known" if not report.tokens else "the server sends none"
        report.lacks("logprobs", reason)
    if not report.caching:
        report.lacks("caching", "no token of these short requests came from a cache")
    if report.prices is None:
        report.lacks("prices", "not known: put them into the model's alias, or into prices.toml below the home")


def _inner(model: Model) -> Any:
    """The model below the wrappers that retry and set a temperature."""
    while (inner := getattr(model, "inner", None)) is not None:
        model = inner
    return model


def _prices(server: Any) -> dict[str, float | None] | None:
    price = getattr(server, "price", FREE)
    if not isinstance(price, Price) or not price.known:
        return None
    return {"input": price.input, "output": price.output, "cached": price.cached}
