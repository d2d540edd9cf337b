"""The hint before the whole rollout (arm `rlvr_opsd`): the rival that on-policy self-distillation (OPSD) and SDPO are.
The teacher reads all hints of a rollout before its first turn, and the policy is drawn to it at every token that it
sampled, whichever turn went wrong. The table is `[ttf]`, without its anchor and its discounts: no turn is left to hold.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from gametape.agent.episode import Episode
from gametape.agent.limits import RolloutLimits
from gametape.core.config import RunConfig
from gametape.core.errors import BadInput
from gametape.core.hint import Hint
from gametape.core.token_segments import split_segments
from gametape.engines.chat_formats.protocol import insert_hint
from gametape.engines.token_conversation import TokenModel
from gametape.train.algorithms.ttf import Ttf
from gametape.train.coach_annotator import CoachAnnotator
from gametape.train.rollouts import DistillTarget, GroupAnnotator, distill_target_at


class Opsd(Ttf):
    """Verified rewards, and the distillation of a teacher that knew all hints from the beginning."""

    weighs_effect: ClassVar[bool] = False

    def __init__(self, config: RunConfig) -> None:
        if config.ttf.teacher == "current":
            raise BadInput("ttf.teacher: rlvr_opsd reads whole rollouts again with the start or a slow average (ema)")
        plain = config.ttf.model_copy(update={"anchor": 0.0, "gamma": 1.0, "prefix_gradient": True})
        super().__init__(config.model_copy(update={"ttf": plain}))

    def after_batch(self) -> None:
        """Most turns of a rollout have nothing to do with its hints: what they change there closes no gap."""

    def make_annotator(self, model: TokenModel, limits: RolloutLimits) -> GroupAnnotator:
        self._annotator = WholeRolloutAnnotator(self.config, model, limits, self.gated, self.score_group)
        return self._annotator


class WholeRolloutAnnotator(CoachAnnotator):
    """Every turn of a rollout with a hint becomes a target, whose teacher reads the hints before the first turn."""

    def targets_for(self, episode: Episode, hints: Sequence[Hint], name: str, index: int) -> list[DistillTarget]:
        used = self.controlled_hints(episode, hints)
        if not used:
            return []
        texts = list(dict.fromkeys(hint.text for hint in used))
        segments = split_segments(episode.steps)
        prompts = {step.step_id: tokens.prompt_ids for step in episode.steps if (tokens := step.tokens())}
        targets: list[DistillTarget] = []
        for segment in segments:
            steps = sorted({step for step, bit in zip(segment.steps, segment.mask, strict=True) if bit})
            opening = self._hinted(prompts[steps[0]], texts)
            first = distill_target_at(segments, steps[0], opening, "", "")
            if len(segment.ids) + len(first.hint_ids) > self.model.window_ids:
                continue
            for step in steps:
                own = distill_target_at(segments, step, opening, "", "")
                before = (*first.hint_ids, *segment.ids[first.start : own.start])
                targets.append(
                    replace(
                        own,
                        shared_prefix=first.shared_prefix,
                        hint_ids=before,
                        kind=used[0].type,
                        text=" ".join(texts),
                        author=used[0].author,
                        trajectory_id=name,
                        rollout_index=index,
                    )
                )
        return targets

    def _hinted(self, prompt_ids: Sequence[int], texts: Sequence[str]) -> list[int]:
        prompt = list(prompt_ids)
        for text in texts:
            prompt = insert_hint(self.model.chat_format, prompt, text)
        return prompt
