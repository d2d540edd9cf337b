"""The two cheap gates: does the hint change the model's mind, and is what it then prefers well formed."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gametape.agent.episode import Episode
from gametape.agent.tools import argument_schema
from gametape.coach.evidence import HintCandidate, collect_evidence
from gametape.coach.forks import EpisodeForker
from gametape.coach.localization import locate_candidates
from gametape.coach.posterior import NO_TRIALS, SuccessCount, probability_of_gain, success_count
from gametape.coach.span_scores import SpanQuery, SpanScores, greedy_continuation
from gametape.core.hint import HintGate
from gametape.core.messages import Generation
from gametape.engines.conversation import Call, ToolDefinition
from gametape.engines.token_conversation import TokenModel

MIN_LOGPROB_DROP = 1.0
"""Nats by which a hint must lower the log-probability of what it is about."""


async def likelihood_gate(
    model: TokenModel, question: SpanQuery, hint: str, scores: SpanScores | None, delta: float = MIN_LOGPROB_DROP
) -> HintGate:
    """Passed where the hint lowers the log-probability of the span by `delta`, or where it changes the likeliest token
    at the first place at which the hinted turn leaves the span. The value is the drop, 0 where it was not scored.
    """
    drop, tokens = (scores.drop, scores.tokens) if scores else (0.0, 0)
    if drop >= delta:
        return HintGate(passed=True, value=drop, detail=f"the log-probability falls by {drop:.2f}", tokens=tokens)
    sampled = question.span_ids
    after = await greedy_continuation(model, question, hint, len(sampled), spoken=True)
    tokens += _tokens_used(after)
    leaves = _first_difference(after.completion_ids, sampled)
    if leaves is None:
        return HintGate(passed=False, value=drop, detail="the hint changes nothing there", tokens=tokens)
    before = await greedy_continuation(model, question, "", leaves + 1, spoken=True)
    changed = before.completion_ids[: leaves + 1] == sampled[: leaves + 1]
    told = f"the likeliest token {'changes' if changed else 'does not change'} at {leaves}"
    return HintGate(passed=changed, value=drop, detail=told, tokens=tokens + _tokens_used(before))


async def wellformed_gate(
    model: TokenModel, question: SpanQuery, hint: str, tools: Sequence[ToolDefinition], most: int
) -> HintGate:
    """Passed where the likeliest turn after the hint holds calls, all of tools that there are, with arguments that fit
    and, where they write Python, with code that can be read."""
    after = await greedy_continuation(model, question, hint, most, spoken=False)
    parsed = model.chat_format.parse(after.completion_ids)
    fault = parsed.problem or ("" if parsed.calls else "no call")
    fault = fault or next((told for call in parsed.calls if (told := _fault(call, tools))), "")
    said = ", ".join(f"{call.name} {call.arguments}" for call in parsed.calls)
    return HintGate(passed=not fault, value=float(not fault), detail=(fault or said)[:200], tokens=_tokens_used(after))


def _fault(call: Call, tools: Sequence[ToolDefinition]) -> str:
    tool = next((tool for tool in tools if tool["name"] == call.name), None)
    if tool is None:
        return f"no tool {call.name[:80]}"
    return argument_schema.argument_problem(tool.get("parameters") or {}, call.arguments) or _unreadable(call.arguments)


def _unreadable(arguments: dict[str, Any]) -> str:
    path, content = arguments.get("path"), arguments.get("content")
    if isinstance(path, str) and path.endswith(".py") and isinstance(content, str):
        try:
            ast.parse(content)
        except (SyntaxError, ValueError, RecursionError) as error:
            return f"the code cannot be read: {error}"
    return ""


def _first_difference(ids: Sequence[int], others: Sequence[int]) -> int | None:
    return next((at for at, (one, other) in enumerate(zip(ids, others, strict=False)) if one != other), None)


def _tokens_used(generation: Generation) -> int:
    return generation.usage.prompt_tokens + generation.usage.completion_tokens


MIN_FORKS = 32
"""At least so many, those with the hint and those without it together, over all targets of a type."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class ForkOutcomes:
    """Of some forks: in how many the turn's own check held, and in how many the whole succeeded."""

    check: SuccessCount = NO_TRIALS
    success: SuccessCount = NO_TRIALS

    def __add__(self, other: "ForkOutcomes") -> "ForkOutcomes":
        return ForkOutcomes(self.check + other.check, self.success + other.success)


_NO_BRANCHES = ForkOutcomes()


@dataclass(frozen=True)
class ForkTrial:
    """Forks without a hint and with it, pooled over targets of a type."""

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
    """Passed where it is sure that more succeed with the hint; or that the turn's own check holds more often, while
    nothing shows that fewer succeed. The value is the larger probability of a gain that decides."""
    helps = trial.success_gain >= confidence
    harms = trial.success_gain <= 1 - confidence
    value = trial.success_gain if helps or harms else max(trial.success_gain, trial.check_gain)
    told = (
        f"the turn's own check {trial.plain.check} -> {trial.hinted.check}, "
        f"success {trial.plain.success} -> {trial.hinted.success}"
    )
    enough = trial.forks >= least
    return HintGate(
        passed=enough and value >= confidence,
        value=value,
        detail=told if enough else f"{told}: too few forks",
        forks=trial.forks,
        tokens=trial.tokens,
    )


async def run_fork_trial(
    ground: EpisodeForker, target: HintCandidate, others: Sequence[HintCandidate], pairs: int
) -> ForkTrial:
    """Forks in pairs that share a seed, from the earliest known target on; all others are hinted in both branches.

    Otherwise a fault that was made before this turn, or is made after it, would hide what the hint is worth.
    """
    known = {other.turn: other.text for other in others if other.turn != target.turn}
    first = min([target.turn, *known])
    before = ground.cost.tokens
    seeds = [1000 * target.turn + number for number in range(pairs)]
    plain = await ground.branches(first, known, seeds)
    hinted = await ground.branches(first, {**known, target.turn: target.text}, seeds)
    return ForkTrial(
        _fork_outcomes(plain, target.turn), _fork_outcomes(hinted, target.turn), ground.cost.tokens - before
    )


def _fork_outcomes(episodes: Sequence[Episode], turn: int) -> ForkOutcomes:
    """Forks in which the machinery failed say nothing."""
    judged = [one for one in episodes if one.score is not None]
    return ForkOutcomes(
        success_count(
            [not any(target.turn == turn for target in locate_candidates(collect_evidence(one))) for one in judged]
        ),
        success_count([bool(one.score and one.score.passed) for one in judged]),
    )
