"""What a recorded rollout gives to training: lines of token ids, each with a mask of what the policy chose.

A rollout whose context was never rewritten is one segment. Where it was (compaction, going back to an earlier turn) a
new one begins, so that every chosen token is scored in the context in which it was chosen, and none is scored twice.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gametape.core.step import Step
from gametape.core.tokens import TurnTokens


@dataclass
class TokenSegment:
    """One growing context. The four columns have the same length.

    Log-probabilities are 0 and versions -1 where the mask is 0. `steps` says which step each choice came from, 0 where
    there was none.
    """

    ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    policy_versions: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)

    def append_turn(self, turn: TurnTokens, step: int, copied: bool) -> None:
        """Append a turn: what is new in its prompt, then what was sampled."""
        self._pad(turn.prompt_ids[len(self.ids) :])
        size = len(turn.completion_ids)
        chosen = [0] * size if copied else turn.loss_mask or [0] * size
        self.ids += turn.completion_ids
        self.mask += chosen
        self.logprobs += [
            value if bit else 0.0 for bit, value in zip(chosen, turn.logprobs or [0.0] * size, strict=True)
        ]
        versions = turn.policy_versions or [0] * size
        self.policy_versions += [version if bit else -1 for bit, version in zip(chosen, versions, strict=True)]
        self.steps += [step if bit else 0 for bit in chosen]

    def continues_with(self, turn: TurnTokens) -> bool:
        return turn.prompt_ids[: len(self.ids)] == self.ids

    def _pad(self, ids: Sequence[int]) -> None:
        self.ids += ids
        self.mask += [0] * len(ids)
        self.logprobs += [0.0] * len(ids)
        self.policy_versions += [-1] * len(ids)
        self.steps += [0] * len(ids)


def split_segments(steps: Iterable[Step]) -> list[TokenSegment]:
    """The segments of a rollout, in order. Turns without ids give nothing; segments without a choice are left out."""
    segments: list[TokenSegment] = []
    current = TokenSegment()
    for step in steps:
        if step.gametape_extra.compacted:
            current = TokenSegment()
        turn = step.tokens()
        if turn is None:
            continue
        if not current.continues_with(turn):
            current = TokenSegment()
        if not current.ids:
            segments.append(current)
        current.append_turn(turn, step.step_id, bool(step.is_copied_context))
    return [segment for segment in segments if any(segment.mask)]
