"""The gates of a hint: does it change what the model prefers, is that well formed, and do more forks succeed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gametape.agent.episode import Episode
from gametape.agent.tools import argument_schema
from gametape.coach.evidence import HintCandidate, collect_evidence
from gametape.coach.fork_pair import telling_pair
from gametape.coach.forks import EpisodeForker
from gametape.coach.localization import locate_candidates
from gametape.coach.posterior import NO_TRIALS, SuccessCount, probability_of_gain, success_count
from gametape.coach.span_scores import SpanQuery, SpanScores, greedy_continuation
from gametape.core.hint import HintGate
from gametape.core.messages import Generation
from gametape.engines.conversation import Call, ToolDefinition
from gametape.engines.token_conversation import TokenModel
from gametape.syntax.source import parse

MIN_LOGPROB_DROP = 1.0
"""Nats by which a hint must lower the log-probability of the wrong action."""


async def likelihood_gate(
    model: TokenModel, query: SpanQuery, hint: str, scores: SpanScores | None, delta: float = MIN_LOGPROB_DROP
) -> HintGate:
    """Passed where the hint lowers the log-probability of the span by `delta`, or where it changes the likeliest token
    at the first position at which the hinted turn differs from the span. The value is the drop, 0 where it was not
    scored."""
    drop, tokens = (scores.drop, scores.tokens) if scores else (0.0, 0)
    if drop >= delta:
        return HintGate(passed=True, value=drop, detail=f"the log-probability falls by {drop:.2f}", tokens=tokens)
    sampled = query.span_ids
    after = await greedy_continuation(model, query, hint, len(sampled), from_span=True)
    tokens += _tokens_used(after)
    position = _first_difference(after.completion_ids, sampled)
    if position is None:
        return HintGate(passed=False, value=drop, detail="the hint changes nothing there", tokens=tokens)
    before = await greedy_continuation(model, query, "", position + 1, from_span=True)
    changed = before.completion_ids[: position + 1] == sampled[: position + 1]
    detail = f"the likeliest token {'changes' if changed else 'does not change'} at {position}"
    return HintGate(passed=changed, value=drop, detail=detail, tokens=tokens + _tokens_used(before))


async def wellformed_gate(
    model: TokenModel, query: SpanQuery, hint: str, tools: Sequence[ToolDefinition], most: int
) -> HintGate:
    """Passed where the likeliest turn after the hint has calls, all of existing tools, with arguments that fit and,
    where they write Python, with code that parses."""
    after = await greedy_continuation(model, query, hint, most, from_span=False)
    parsed = model.chat_format.parse(after.completion_ids)
    fault = parsed.problem or ("" if parsed.calls else "no call")
    fault = fault or next((problem for call in parsed.calls if (problem := _fault(call, tools))), "")
    calls = ", ".join(f"{call.name} {call.arguments}" for call in parsed.calls)
    return HintGate(passed=not fault, value=float(not fault), detail=(fault or calls)[:200], tokens=_tokens_used(after))


def _fault(call: Call, tools: Sequence[ToolDefinition]) -> str:
    tool = next((tool for tool in tools if tool["name"] == call.name), None)
    if tool is None:
        return f"no tool {call.name[:80]}"
    return argument_schema.argument_problem(tool.get("parameters") or {}, call.arguments) or _unreadable(call.arguments)


def _unreadable(arguments: dict[str, Any]) -> str:
    path, content = arguments.get("path"), arguments.get("content")
    if isinstance(path, str) and path.endswith(".py") and isinstance(content, str):
        try:
            parse(content)
        except SyntaxError as error:
            return f"the code cannot be read: {error}"
    return ""


def _first_difference(ids: Sequence[int], other_ids: Sequence[int]) -> int | None:
    return next((index for index, (left, right) in enumerate(zip(ids, other_ids, strict=False)) if left != right), None)


def _tokens_used(generation: Generation) -> int:
    return generation.usage.prompt_tokens + generation.usage.completion_tokens


MIN_FORKS = 32
"""Forks with and without the hint together that the gate needs, over all candidates of a type."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class ForkOutcomes:
    """In how many forks the turn's own check held, and how many forks succeeded."""

    check: SuccessCount = NO_TRIALS
    success: SuccessCount = NO_TRIALS

    def __add__(self, other: "ForkOutcomes") -> "ForkOutcomes":
        return ForkOutcomes(self.check + other.check, self.success + other.success)


_NO_BRANCHES = ForkOutcomes()


@dataclass(frozen=True)
class ForkTrial:
    """Forks without a hint and with it, pooled over candidates of a type."""

    plain: ForkOutcomes = _NO_BRANCHES
    hinted: ForkOutcomes = _NO_BRANCHES
    tokens: int = 0

    def __add__(self, other: "ForkTrial") -> "ForkTrial":
        return ForkTrial(self.plain + other.plain, self.hinted + other.hinted, self.tokens + other.tokens)

    @property
    def forks(self) -> int:
        return self.plain.success.trials + self.hinted.success.trials

    @property
    def check_gain(self) -> float:
        return probability_of_gain(self.plain.check, self.hinted.check)

    @property
    def success_gain(self) -> float:
        return probability_of_gain(self.plain.success, self.hinted.success)


def outcome_gate(trial: ForkTrial, least: int = MIN_FORKS, confidence: float = CONFIDENCE) -> HintGate:
    """Passed where more forks succeed with the hint at this confidence; or where the turn's own check holds more often,
    while nothing shows that fewer succeed. The value is the larger of the deciding probabilities of a gain."""
    helps = trial.success_gain >= confidence
    harms = trial.success_gain <= 1 - confidence
    value = trial.success_gain if helps or harms else max(trial.success_gain, trial.check_gain)
    counts = (
        f"the turn's own check {trial.plain.check} -> {trial.hinted.check}, "
        f"success {trial.plain.success} -> {trial.hinted.success}"
    )
    enough = trial.forks >= least
    return HintGate(
        passed=enough and value >= confidence,
        value=value,
        detail=counts if enough else f"{counts}: too few forks",
        forks=trial.forks,
        tokens=trial.tokens,
    )


async def run_fork_trial(
    forker: EpisodeForker, candidate: HintCandidate, candidates: Sequence[HintCandidate], pairs: int
) -> ForkTrial:
    """Forks in pairs that share a seed, from the earliest candidate on; all other candidates are hinted in both.

    Otherwise an earlier or a later mistake would hide what the hint is worth.
    """
    other_hints = {other.turn: other.text for other in candidates if other.turn != candidate.turn}
    first = min([candidate.turn, *other_hints])
    before = forker.cost.tokens
    seeds = [1000 * candidate.turn + number for number in range(pairs)]
    plain = await forker.branches(first, other_hints, seeds)
    hinted = await forker.branches(first, {**other_hints, candidate.turn: candidate.text}, seeds)
    pair = telling_pair(candidate.step, candidate.turn, plain, hinted)
    forker.pairs += [pair] if pair else []
    return ForkTrial(
        _fork_outcomes(plain, candidate.turn), _fork_outcomes(hinted, candidate.turn), forker.cost.tokens - before
    )


def _fork_outcomes(episodes: Sequence[Episode], turn: int) -> ForkOutcomes:
    """Forks with an infrastructure error do not count."""
    scored = [episode for episode in episodes if episode.score is not None]
    return ForkOutcomes(
        success_count(
            [
                not any(candidate.turn == turn for candidate in locate_candidates(collect_evidence(episode)))
                for episode in scored
            ]
        ),
        success_count([bool(episode.score and episode.score.passed) for episode in scored]),
    )
