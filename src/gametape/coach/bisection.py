"""Counterfactual localisation: finds by forks the turn at which the odds of success fell, where no message shows it."""

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
"""The probability that the odds fell, above which a turn is blamed for it."""


@dataclass
class _BisectionSearch:
    forker: EpisodeForker
    forks: int
    episodes_by_turn: dict[int, list[Episode]] = field(default_factory=dict)

    async def odds(self, turn: int) -> SuccessCount:
        """Successes when everything from this turn on is sampled again."""
        if turn not in self.episodes_by_turn:
            seeds = [1000 * turn + number for number in range(self.forks)]
            self.episodes_by_turn[turn] = await self.forker.branches(turn, {}, seeds)
        return success_count([episode.score.passed for episode in self.episodes_by_turn[turn] if episode.score])


async def decisive_turn(forker: EpisodeForker, tools: Sequence[ToolDefinition], forks: int) -> HintCandidate | None:
    """The turn of a failed rollout at which the odds of success fell most, by bisection with `forks` forks per turn;
    None where the odds were never high enough to fall.

    Forks from before that turn may succeed; forks from after it fail as the rollout did.
    """
    turns = agent_turns(forker.steps)
    if not turns:
        return None
    search = _BisectionSearch(forker, forks)
    low, high = 1, len(turns) + 1
    odds_before, odds_after = await search.odds(low), SuccessCount(0, forks)
    while high - low > 1:
        middle = (low + high) // 2
        middle_odds = await search.odds(middle)
        if odds_before.log_odds - middle_odds.log_odds >= middle_odds.log_odds - odds_after.log_odds:
            high, odds_after = middle, middle_odds
        else:
            low, odds_before = middle, middle_odds
    if probability_of_gain(odds_after, odds_before) < _MIN_PROBABILITY:
        return None
    turn = turns[low - 1]
    detail = f"success when continued from before this turn {odds_before}, from after it {odds_after}"
    kind, hint = _rule_from_successes(search.episodes_by_turn[low], turn, tools)
    step = turn.step.step_id
    return HintCandidate(step, turn.number, "counterfactual", kind, hint, detail, noticed_step=step)


def _rule_from_successes(
    episodes: Sequence[Episode], turn: RecordedTurn, tools: Sequence[ToolDefinition]
) -> tuple[str, str]:
    """The type and text of a hint: what successful forks did at the turn and the rollout did not, in words that belong
    to the tools (a tool, or a value that its schema lists). Never a name or a value of the instance."""
    listed = {
        value
        for tool in tools
        for schema in (tool.get("parameters") or {}).get("properties", {}).values()
        for value in schema.get("enum", ())
    }
    successful_words = Counter(
        word
        for episode in episodes
        if episode.score and episode.score.passed
        for word in _words(agent_turns(episode.steps)[turn.number - 1], tools, listed)
    )
    rollout_words = _words(turn, tools, listed)
    for word, _ in successful_words.most_common():
        if word not in rollout_words:
            instead = f" , not {' '.join(sorted(rollout_words))}" if rollout_words else ""
            return f"takes {word}", f"rule : this takes {word}{instead}"
    return "decisive turn", DECIDES


def _words(turn: RecordedTurn, tools: Sequence[ToolDefinition], listed: set[object]) -> set[str]:
    names = {tool["name"] for tool in tools}
    called = {call.name for call in turn.calls} & names
    values = {value for call in turn.calls for value in call.arguments.values() if isinstance(value, str)}
    return called | {value for value in values if value in listed}
