"""Counterfactual localisation: at which turn were the odds of success lost, where nothing says so."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from gametape.agent.episode import Episode
from gametape.coach.evidence import HintCandidate, RecordedTurn, agent_turns
from gametape.coach.forks import EpisodeForker
from gametape.coach.hints import DECIDES
from gametape.coach.posterior import SuccessCount, probability_of_gain, success_count
from gametape.engines.conversation import ToolDefinition

_MIN_PROBABILITY = 0.9
"""Of a drop, before a turn is blamed for it."""


@dataclass
class _BisectionSearch:
    ground: EpisodeForker
    forks: int
    played: dict[int, list[Episode]] = field(default_factory=dict)

    async def odds(self, turn: int) -> SuccessCount:
        """Of success when everything from this turn on is sampled anew."""
        if turn not in self.played:
            seeds = [1000 * turn + number for number in range(self.forks)]
            self.played[turn] = await self.ground.branches(turn, {}, seeds)
        return success_count([one.score.passed for one in self.played[turn] if one.score])


async def decisive_turn(ground: EpisodeForker, tools: Sequence[ToolDefinition], forks: int) -> HintCandidate | None:
    """The turn of a failed rollout at which the odds of success fell most, by bisection with so many forks at a turn;
    None where they never were good enough to fall.

    Whoever plays on from before that turn may succeed, and whoever plays on after it fails as the rollout did.
    """
    turns = agent_turns(ground.steps)
    if not turns:
        return None
    search = _BisectionSearch(ground, forks)
    low, high = 1, len(turns) + 1
    best, worst = await search.odds(low), SuccessCount(0, forks)
    while high - low > 1:
        middle = (low + high) // 2
        between = await search.odds(middle)
        if best.log_odds - between.log_odds >= between.log_odds - worst.log_odds:
            high, worst = middle, between
        else:
            low, best = middle, between
    if probability_of_gain(worst, best) < _MIN_PROBABILITY:
        return None
    turn = turns[low - 1]
    evidence = f"success when played on from before this turn {best}, from after it {worst}"
    kind, hint = _rule_from_successes(search.played[low], turn, tools)
    step = turn.step.step_id
    return HintCandidate(step, turn.number, "counterfactual", kind, hint, evidence, noticed_step=step)


def _rule_from_successes(
    episodes: Sequence[Episode], turn: RecordedTurn, tools: Sequence[ToolDefinition]
) -> tuple[str, str]:
    """What those that succeeded did at the turn and the rollout did not, in words that belong to the tools: a tool, or
    a value out of those that its schema lists. Never a name or a value of the instance."""
    listed = {
        value
        for tool in tools
        for told in (tool.get("parameters") or {}).get("properties", {}).values()
        for value in told.get("enum", ())
    }
    good = Counter(
        word
        for one in episodes
        if one.score and one.score.passed
        for word in _words(agent_turns(one.steps)[turn.number - 1], tools, listed)
    )
    done = _words(turn, tools, listed)
    for word, _ in good.most_common():
        if word not in done:
            instead = f" , not {' '.join(sorted(done))}" if done else ""
            return f"takes {word}", f"rule : this takes {word}{instead}"
    return "decisive turn", DECIDES


def _words(turn: RecordedTurn, tools: Sequence[ToolDefinition], listed: set[object]) -> set[str]:
    names = {tool["name"] for tool in tools}
    called = {call.name for call in turn.calls} & names
    values = {value for call in turn.calls for value in call.arguments.values() if isinstance(value, str)}
    return called | {value for value in values if value in listed}
