"""Long-run logs in the shapes of collapses that were seen in the wild, on healthy steps made of real sentences.

A shape says at what rate a step is collapsed (`rate`, by step) and what such a step looks like. Healthy steps are
sentences from the docstrings of Python's own library in random order, some with a tool call.
"""

import ast
import random
import re
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gametape.watch.observed_step import ObservedAction, ObservedStep

ROOT = Path(__file__).parents[1]
HEALTHY = 600
"""Steps before anything changes."""

Make = Callable[[random.Random, int, ObservedStep], ObservedStep]


@dataclass(frozen=True)
class Shape:
    """A collapse: `rate(steps since it began)`, and how a collapsed step is made from a healthy one."""

    name: str
    rate: Callable[[int], float]
    make: Make
    tools: bool = False
    slow: bool = False

    def steps(self, seed: int, length: int) -> Iterator[tuple[float, ObservedStep]]:
        """The generating rate at each step, and the step."""
        rng = random.Random(f"{self.name} {seed}")
        for number in range(length):
            rate = self.rate(number - HEALTHY) if number >= HEALTHY else 0.0
            seen = healthy(rng, number, self.tools)
            yield rate, self.make(rng, number, seen) if rng.random() < rate else seen


@cache
def sentences() -> Sequence[str]:
    """Sentences of five words and more: the same wherever the interpreter is the same."""
    texts: list[str] = []
    for file in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        tree = ast.parse(file.read_text())
        kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        texts += [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds)]
    found = (" ".join(part.split()) for text in texts for part in re.split(r"(?<=[.!?])\s|\n\n", text))
    return sorted({sentence for sentence in found if len(sentence.split()) >= 5})


def healthy(rng: random.Random, number: int, tools: bool) -> ObservedStep:
    text = " ".join(rng.sample(sentences(), rng.choice((1, 1, 2, 3))))
    if not tools:
        return ObservedStep(text, time=60.0 * number)
    tool = rng.choice(("read", "edit", "shell", "search", "test"))
    action = ObservedAction.of(tool, {"path": f"src/{_word(rng)}/{_word(rng)}.py", "line": rng.randrange(400)})
    said = text if rng.random() < 0.7 else ""
    return ObservedStep(
        said, (action,), result=rng.choice(sentences()), time=60.0 * number, cost=rng.uniform(0.01, 0.03)
    )


def _word(rng: random.Random) -> str:
    return re.sub(r"\W", "", rng.choice(rng.choice(sentences()).split())) or "it"


def _some(rng: random.Random, most: int = 3) -> str:
    return " ".join(_word(rng) for _ in range(rng.randint(1, most)))


def _put_in(text: str, what: str, rng: random.Random) -> str:
    words = text.split()
    at = rng.randint(0, len(words))
    return " ".join([*words[:at], what, *words[at:]])


def _phrase(rng: random.Random, _number: int, seen: ObservedStep) -> ObservedStep:
    return ObservedStep(_put_in(seen.text, "the honest thing to say here is that", rng))


def _six_slots(rng: random.Random, number: int, _seen: ObservedStep) -> ObservedStep:
    said = f"Cycle {number}: checked {_some(rng)} and found {_some(rng)}; next I will {_some(rng)} the {_some(rng)}"
    return ObservedStep(f"{said} so that {_some(rng)} stays {_some(rng)}.")


def _long_slots(rng: random.Random, _number: int, _seen: ObservedStep) -> ObservedStep:
    return ObservedStep(
        f"Status: {_some(rng, 4)}. Risk: {_some(rng, 4)}. Next: {_some(rng, 4)}. Owner: {_some(rng, 2)}."
    )


def _boxed(_rng: random.Random, _number: int, seen: ObservedStep) -> ObservedStep:
    return ObservedStep(" ".join(f"\\boxed{{{part}}}" for part in seen.text.split(". ")))


def _emoji(_rng: random.Random, _number: int, seen: ObservedStep) -> ObservedStep:
    return ObservedStep(seen.text + " \N{SPARKLES}")


def _ending(_rng: random.Random, _number: int, seen: ObservedStep) -> ObservedStep:
    return ObservedStep(seen.text + " Onwards, friend!")


def _silent(_rng: random.Random, _number: int, seen: ObservedStep) -> ObservedStep:
    return ObservedStep("", seen.actions, seen.result, time=seen.time, cost=seen.cost)


def _one_word(rng: random.Random, _number: int, seen: ObservedStep) -> ObservedStep:
    text = seen.text
    for _ in range(rng.randint(1, 6)):
        text = _put_in(text, "delve", rng)
    return ObservedStep(text)


_GARDEN = (
    *("compost", "seedlings", "pruning", "mulch", "orchard"),
    *("greenhouse", "tomatoes", "irrigation", "perennials", "topsoil"),
)


def _subject(rng: random.Random, _number: int, seen: ObservedStep) -> ObservedStep:
    text = seen.text
    for word in rng.sample(_GARDEN, 5):
        text = _put_in(text, word, rng)
    return ObservedStep(text)


def _one_file(rng: random.Random, _number: int, seen: ObservedStep) -> ObservedStep:
    action = ObservedAction.of("edit", {"path": "src/core/config.py", "line": rng.randrange(400)})
    return ObservedStep(seen.text, (action,), seen.result, time=seen.time, cost=seen.cost)


def _loop(_rng: random.Random, number: int, seen: ObservedStep) -> ObservedStep:
    action = ObservedAction.of("shell", {"command": ("git status", "ls", "make test")[number % 3]})
    return ObservedStep(seen.text, (action,), "ok", time=seen.time, cost=seen.cost)


def _refusing(rng: random.Random, _number: int, _seen: ObservedStep) -> ObservedStep:
    return ObservedStep(
        rng.choice(("I cannot continue with this.", "I'm unable to help with that.", "I give up on this one."))
    )


def _standing_by(_rng: random.Random, _number: int, _seen: ObservedStep) -> ObservedStep:
    return ObservedStep("Standing by.")


def _few_words(rng: random.Random, _number: int, seen: ObservedStep) -> ObservedStep:
    words = ["all", "is", "well", "and", "good", "the", "work", "goes", "on", "now", "here", "so"]
    return ObservedStep(" ".join(rng.choice(words) for _ in seen.text.split()))


def _spending(_rng: random.Random, _number: int, seen: ObservedStep) -> ObservedStep:
    return ObservedStep(seen.text, seen.actions, seen.result, time=seen.time, cost=(seen.cost or 0) * 40)


def _at_once(rate: float) -> Callable[[int], float]:
    return lambda _since: rate


def _by_days(*rates: float, day: int = 240) -> Callable[[int], float]:
    return lambda since: rates[min(since // day, len(rates) - 1)]


def _rising(steps: int, top: float) -> Callable[[int], float]:
    return lambda since: min(top, top * since / steps)


SHAPES = (
    Shape("a phrase, rising to 229 of 240 a day", _by_days(5 / 240, 40 / 240, 229 / 240), _phrase),
    Shape("a phrase, rising within 100 steps", _rising(100, 0.97), _phrase),
    Shape("a phrase in 8 of 10 steps", _at_once(0.8), _phrase),
    Shape("a six-slot template at 99 %", _at_once(0.99), _six_slots),
    Shape("a six-slot template at 90 %", _at_once(0.9), _six_slots),
    Shape("a template that is mostly slots", _at_once(0.99), _long_slots),
    Shape("\\boxed around every sentence", _at_once(0.97), _boxed),
    Shape("\\boxed in every third step", _at_once(1 / 3), _boxed),
    Shape("an emoji nobody listed", _at_once(0.97), _emoji),
    Shape("an ending nobody listed", _at_once(0.97), _ending),
    Shape("97 % silent tool calls", _at_once(0.97), _silent, tools=True),
    Shape("one word", _at_once(0.97), _one_word),
    Shape("one word in 8 of 10 steps", _at_once(0.8), _one_word),
    Shape("a subject", _at_once(0.97), _subject),
    Shape("one file", _at_once(0.97), _one_file, tools=True),
    Shape("a round of three calls that succeed", _at_once(0.97), _loop, tools=True),
    Shape("refusing", _at_once(0.9), _refusing),
    Shape("'Standing by.'", _at_once(0.97), _standing_by),
    Shape("twelve words", _at_once(0.97), _few_words),
    Shape("forty times the cost", _at_once(0.97), _spending, tools=True),
    Shape("a phrase, over six weeks", _rising(10_000, 0.97), _phrase, slow=True),
    Shape("a template, over six weeks", _rising(10_000, 0.97), _six_slots, slow=True),
    Shape("silence, over six weeks", _rising(10_000, 0.97), _silent, tools=True, slow=True),
    Shape("twelve words, over six weeks", _rising(10_000, 0.97), _few_words, slow=True),
)
