"""How far the embedded engine's log-probabilities are from a plain forward, beside how far that is from itself.

The engine continues prompts; transformers then reads the whole sequences at once, as a trainer does, and says how
likely each drawn token was. The plain network's own jitter is what it says of the same tokens when it decodes them one
by one with its static cache, in batches of several sizes.
"""

import asyncio
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from gametape.core.messages import GenerateRequest, Sampling
from gametape.engines.torch.build import build_engine
from gametape.engines.torch.stepper import EngineLimits

TEXT = Path(__file__).parents[1] / "ARCHITECTURE.md"
GROUP = 64
LENGTHS = (57, 173)
COUNT = 64
STEPPED = {1: 4, 8: 32, 64: 128}
"""Sizes of batches, and how many of the sequences are decoded in such."""

Ids = list[int]


def mismatch(module: Any, tokenizer: Path | None, jitter: bool) -> dict[str, Any]:
    """Greedy and sampled; in batches of all sequences, and of a few."""
    prompts = made_prompts(tokenizer)
    found: dict[str, Any] = {}
    for name, temperature in (("greedy", 0.0), ("sampled", 1.0)):
        drawn, own_NT = engine_drawn(module, prompts, temperature)
        plain_NT, wide_NT, likeliest_NT = plain(module, prompts, drawn, 1)
        figures: dict[str, Any] = {
            "tokens": own_NT.numel(),
            "engine - plain": distance(own_NT, plain_NT),
            "engine - plain with float32 logits": distance(own_NT, wide_NT),
            "plain in batches of 16 - plain": distance(plain(module, prompts, drawn, 16)[0], plain_NT),
        }
        if temperature == 0:
            figures["likeliest of plain"] = share(torch.tensor(drawn) == likeliest_NT)
        for batch, rows in STEPPED.items() if jitter else ():
            stepped_NT, stepped_wide_NT, stepped_likeliest_NT = stepped(module, prompts, drawn, batch, rows)
            given = min(rows, len(prompts))
            name_of = f"plain token by token in batches of {batch}"
            figures[f"{name_of} - plain"] = distance(stepped_NT, plain_NT[:given])
            figures[f"{name_of} - plain, both with float32 logits"] = distance(stepped_wide_NT, wide_NT[:given])
            figures[f"engine - plain with float32 logits, the same {given}"] = distance(own_NT[:given], wide_NT[:given])
            if temperature == 0:
                agreed = share(stepped_likeliest_NT == likeliest_NT[:given])
                figures[f"{name_of}: likeliest of plain"] = agreed
        found[name] = figures
    alone, alone_NT = engine_drawn(module, prompts[:3], 1.0)
    found["three alone as in company"] = {
        "ids": alone == drawn[:3],
        "farthest": float((alone_NT - own_NT[:3]).abs().max()),
    }
    return found


def made_prompts(tokenizer: Path | None) -> list[Ids]:
    """Stretches of a text where there is a tokenizer, else random tokens; a `GROUP` of each length."""
    generator = torch.Generator().manual_seed(1)
    if tokenizer is None:
        return [torch.randint(1000, 40000, (n,), generator=generator).tolist() for n in LENGTHS for _ in range(GROUP)]
    text = transformers.AutoTokenizer.from_pretrained(tokenizer)(TEXT.read_text())["input_ids"]
    starts = torch.randint(len(text) - max(LENGTHS), (len(LENGTHS) * GROUP,), generator=generator).tolist()
    return [text[start : start + LENGTHS[number // GROUP]] for number, start in enumerate(starts)]


def engine_drawn(module: Any, prompts: list[Ids], temperature: float) -> tuple[list[Ids], Tensor]:
    """What the engine draws after each prompt, all at once, and its log-probabilities [N, T]."""

    async def run() -> list[Any]:
        engine = build_engine(
            module, EngineLimits(max_sequences=len(LENGTHS) * GROUP, token_budget=4096), kv_tokens=1 << 16
        )
        assert engine is not None
        requests = [
            GenerateRequest(
                request_id=str(number),
                prompt_ids=prompt,
                max_tokens=COUNT,
                sampling=Sampling(temperature=temperature, seed=number),
            )
            for number, prompt in enumerate(prompts)
        ]
        try:
            return await asyncio.gather(*(engine.generate(request) for request in requests))
        finally:
            await engine.close()

    generations = asyncio.run(run())
    return [generation.completion_ids for generation in generations], torch.tensor(
        [generation.logprobs for generation in generations]
    )


def plain(module: Any, prompts: list[Ids], drawn: list[Ids], batch: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of whole sequences: log-probabilities of the drawn tokens; the same with logits that are not rounded to the
    weights' type; and the likeliest tokens.
    """
    found = []
    for start in range(0, len(prompts), batch):
        wholes = [p + d for p, d in zip(prompts[start : start + batch], drawn[start : start + batch], strict=True)]
        with torch.no_grad():
            hidden_BTE = module.model(torch.tensor(wholes, device=module.device)).last_hidden_state[:, -COUNT - 1 : -1]
        found.append(_judged(module, hidden_BTE, torch.tensor(drawn[start : start + batch], device=module.device)))
    logprobs, wide, likeliest = zip(*found, strict=True)
    return torch.cat(logprobs), torch.cat(wide), torch.cat(likeliest)


def stepped(module: Any, prompts: list[Ids], drawn: list[Ids], batch: int, rows: int) -> tuple[Tensor, Tensor, Tensor]:
    """As `plain`, by transformers' own decoding with its cache."""
    found = []
    for start in range(0, min(rows, len(prompts)), batch):
        given_BT = torch.tensor(drawn[start : start + batch], device=module.device)
        ids_BT = torch.tensor(prompts[start : start + batch], device=module.device)
        cache = transformers.StaticCache(config=module.config, max_cache_len=max(LENGTHS) + COUNT)
        columns = []
        with torch.no_grad():
            for at in range(COUNT):
                states_BTE = module.model(ids_BT, past_key_values=cache, use_cache=True).last_hidden_state
                columns.append(states_BTE[:, -1])
                ids_BT = given_BT[:, at : at + 1]
        found.append(_judged(module, torch.stack(columns, 1), given_BT))
    logprobs, wide, likeliest = zip(*found, strict=True)
    return torch.cat(logprobs), torch.cat(wide), torch.cat(likeliest)


def _judged(module: Any, hidden_BTE: Tensor, chosen_BT: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    with torch.no_grad():
        rounded_BTV = module.lm_head(hidden_BTE).float().log_softmax(-1)
        wide_BTV = (hidden_BTE.float() @ module.lm_head.weight.float().T).log_softmax(-1)
    given = [logp_BTV.gather(2, chosen_BT[..., None])[..., 0].cpu() for logp_BTV in (rounded_BTV, wide_BTV)]
    return given[0], given[1], rounded_BTV.argmax(-1).cpu()


def distance(one_NT: Tensor, two_NT: Tensor) -> dict[str, float]:
    """|difference| of log-probabilities, and importance ratios of tokens and of whole rows."""
    difference_NT = two_NT.double() - one_NT.double()
    ratios_NT = difference_NT.exp()
    return {
        "mean": float(difference_NT.abs().mean()),
        "max": float(difference_NT.abs().max()),
        "ratio mean": float(ratios_NT.mean()),
        "ratio min": float(ratios_NT.min()),
        "ratio max": float(ratios_NT.max()),
        "row ratio std": float(difference_NT.sum(1).std()),
    }


def share(equal: Tensor) -> float:
    return float(equal.float().mean())
