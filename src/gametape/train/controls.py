"""Hints spoiled on purpose: what a gain is worth shows when its cause is taken away."""

from random import Random

from gametape.agent.playing import Played
from gametape.coach.hints import CHECK_FIRST
from gametape.core.config import TTFConfig
from gametape.core.hint import Hint
from gametape.train.seeds import seed_for

_REMEMBERED = 64


class Controls:
    """Passes hints on as they are, or spoils the share of them that the configuration asks for."""

    def __init__(self, config: TTFConfig, seed: int) -> None:
        self._config, self._seed = config, seed
        self.texts: dict[str, str] = {}
        """By type: hints that were seen, to be said in the wrong place."""

    def spoilt(self, hint: Hint, played: Played) -> Hint:
        """The hint that is used in its place; the record keeps the one that was found."""
        control = self._config.control
        rng = Random(seed_for(self._seed, "control", hint.trajectory_id, hint.step))
        others = [text for kind, text in self.texts.items() if kind != hint.type]
        if len(self.texts) < _REMEMBERED:
            self.texts[hint.type] = hint.text
        if control == "none" or rng.random() >= self._config.spoiled:
            return hint
        if control == "elsewhere":
            return _moved(hint, played, rng)
        text = rng.choice(others) if control == "shuffled" and others else CHECK_FIRST
        return hint.model_copy(update={"text": text})


def _moved(hint: Hint, played: Played, rng: Random) -> Hint:
    """To another turn of the rollout, where it says nothing about what was done."""
    turns = [(step.step_id, tokens) for step in played.steps if step.source == "agent" and (tokens := step.tokens())]
    step, tokens = rng.choice([turn for turn in turns if turn[0] != hint.step] or turns)
    return hint.model_copy(update={"step": step, "span": (0, len(tokens.completion_ids))})
