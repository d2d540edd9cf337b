"""A policy without weights that reads hints: it does the job at hand by the convention, keeps to a rule now and then,
and nearly always to one that it has just been told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from random import Random

from gametape.core.messages import GenerateRequest, Generation, Sampling, TokenUsage, WeightUpdate
from gametape.core.protocols import PolicyEngine
from gametape.engines.chat_formats.terse import TerseChatFormat
from gametape.engines.token_conversation import TokenModel
from gametape.engines.tokenizers.trained import TrainedTokenizer
from gametape.engines.tokenizers.words import word_tokenizer_json
from gametape.tasks.worlds.families import FAMILIES, VALUES
from gametape.tasks.worlds.rules import MODES, SHARED_RULES
from gametape.tasks.worlds.tools import tool_signatures, vocabulary_words

TERSE = TerseChatFormat(TrainedTokenizer(word_tokenizer_json(vocabulary_words())), tool_signatures())
END = "<end>"
_RARE = 1e-4


@dataclass
class Obedient(PolicyEngine):
    """A policy that can also score. `base` is how often it keeps to a rule without a hint, `hinted` with one."""

    base: float = 0.05
    hinted: float = 0.97
    rules: Mapping[str, str] = field(default_factory=lambda: dict(SHARED_RULES))
    version: int = 0
    asked: int = 0

    def likely(self, prompt: str, words: Sequence[str]) -> dict[str, float]:
        """What may come next in a turn, and how likely it is."""
        *_, message = prompt.replace("<tool>", "<user>").split("<user>")
        hint = message.split("takes ")[1].split()[0] if message.startswith(" rule : ") and "takes" in message else ""
        parts = prompt.replace(" next ", " first ").split(" first ")
        job = parts[-1].split("<act>")[0].split("<user>")[0].split()
        family = next(candidate for candidate in FAMILIES.values() if any(kind in job for kind in candidate.kinds))
        item = next(word for word in job if word in family.items)
        value = next(word for word in job if word in VALUES)
        drops = job[0] in ("drop", "clear") or "without" in job
        usual = family.drop_tool if drops else family.put_tool
        marking = job[job.index("which") + 2] if "which" in job else ""
        demand, chance = (hint, self.hinted) if hint else (self.rules.get(marking, ""), self.base)
        mode = demand in MODES
        if not words:
            return {usual: 1.0} if mode or not demand else {demand: chance, usual: 1 - chance}
        if len(words) < 3:
            return {(item, value)[len(words) - 1]: 1.0}
        return {demand: chance, END: 1 - chance} if len(words) == 3 and mode and words[0] == usual else {END: 1.0}

    async def generate(self, request: GenerateRequest) -> Generation:
        self.asked += 1
        prompt = TERSE.tokenizer.decode_with_special(request.prompt_ids)
        rng = Random(request.sampling.seed)
        words: list[str] = []
        logs: list[float] = []
        while not words or words[-1] != END:
            likely = self.likely(prompt, words)
            if request.sampling.temperature == 0:
                words.append(max(likely, key=lambda word: likely[word]))
            else:
                words.append(rng.choices(list(likely), list(likely.values()))[0])
            logs.append(log(likely[words[-1]]))
        ids = [*TERSE.tokenizer.encode(" ".join(words[:-1])), *TERSE.stop_ids][: request.max_tokens]
        return Generation(
            request_id=request.request_id,
            completion_ids=ids,
            logprobs=logs[: len(ids)],
            policy_versions=[self.version] * len(ids),
            finish="stop",
            usage=TokenUsage(prompt_tokens=len(request.prompt_ids), completion_tokens=len(ids)),
        )

    async def score(self, ids: Sequence[int], start: int = 1, sampling: Sampling | None = None) -> list[float]:
        del sampling
        logprobs = []
        for at in range(start, len(ids)):
            turn, _, words = TERSE.tokenizer.decode_with_special(ids[:at]).rpartition("<act>")
            word = TERSE.tokenizer.decode_with_special([ids[at]])
            logprobs.append(log(self.likely(f"{turn}<act>", words.split()).get(word, _RARE)))
        return logprobs

    async def update_weights(self, update: WeightUpdate) -> None:
        self.version = update.policy_version

    async def policy_version(self) -> int:
        return self.version


def obedient(**settings: object) -> TokenModel:
    return TokenModel("obedient", Obedient(**settings), TERSE, 4096)  # type: ignore[arg-type]
