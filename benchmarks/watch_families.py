"""Families of collapse, several shapes each: one half of the shapes for choosing cuts, the other to report on.

A shape takes an agent and returns what becomes of a step: `change(n, step)` for the n-th collapsed one. The rate says
how many steps are collapsed, and may rise; a collapse counts from where the rate has reached half of its top.
"""

import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from gametape.watch.observed_step import ObservedAction, ObservedStep
from watch_agents import CHOSEN, HELD_OUT, LANGUAGES, SyntheticAgent
from watch_collapsed_texts import TEXTS
from watch_work import healthy_steps

Change = Callable[[int, ObservedStep], ObservedStep]


@dataclass(frozen=True)
class Collapse:
    """One shape of a family, its half, the share of steps it reaches, and over how many steps it rises to it."""

    family: str
    shape: str
    half: str
    make: Callable[[SyntheticAgent], Change]
    rate: float = 0.97
    rise: int = 0
    lead: int = 0
    """The first so many steps of it are not a repetition yet."""

    @property
    def _half_there(self) -> int:
        return self.rise // 2 + self.lead

    def steps(self, seed: int, before: int = 300, after: int = 400) -> Iterator[tuple[int, ObservedStep]]:
        """Each step, with its number counted from where the collapse is half there; negative ones are healthy."""
        rng = random.Random(f"{self.family} {self.shape} {seed}")
        before += rng.randrange(100)
        agent = SyntheticAgent.drawn(rng, self.half)
        change = self.make(agent)
        collapsed = 0
        for number in range(before + self._half_there + after):
            since = number - before
            rate = 0.0 if since < 0 else self.rate * min(1.0, since / self.rise if self.rise else 1.0)
            step = agent.usual()
            if rng.random() < rate:
                step = change(collapsed, step)
                collapsed += 1
            yield since - self._half_there, step
            agent.step += 1


def _did(step: ObservedStep, action: ObservedAction, result: str, text: str | None = None) -> ObservedStep:
    return replace(step, actions=(action,), result=result, text=step.text if text is None else text)


def _same_call(result: Callable[[SyntheticAgent, int], str]) -> Callable[[SyntheticAgent], Change]:
    def make(agent: SyntheticAgent) -> Change:
        action = agent.call(2, "", command=f"{agent.rng.choice(('make', './run', 'npm run'))} {agent.word()}")
        return lambda n, step: _did(step, action, result(agent, n))

    return make


def _near_calls(command: Callable[[SyntheticAgent, int], str], result: str) -> Callable[[SyntheticAgent], Change]:
    def make(agent: SyntheticAgent) -> Change:
        return lambda n, step: _did(step, agent.call(2, "", command=command(agent, n)), result)

    return make


def _round(period: int, literal: bool) -> Callable[[SyntheticAgent], Change]:
    """A round of reading calls: the same ones, or with other words each time."""

    def make(agent: SyntheticAgent) -> Change:
        tools = [agent.rng.choice((0, 2, 3, 4)) if at else 3 for at in range(period - 1)] + [2]
        files = [agent.known_file() for _ in range(period)]
        commands = [f"{agent.word()} --{agent.word()}" for _ in range(period)]
        results = [agent.listing() for _ in range(period)]

        def change(n: int, step: ObservedStep) -> ObservedStep:
            at = n % period
            if literal:
                action = ObservedAction.of(agent.tools[tools[at]], {"path": files[at], "command": commands[at]})
                return _did(step, action, results[at])
            action = agent.call(tools[at], files[at], command=f"{commands[at].split()[0]} {agent.word()}")
            return _did(step, action, agent.found() if tools[at] == 3 else results[at])

        return change

    return make


def _rereading(files: int, lines: bool) -> Callable[[SyntheticAgent], Change]:
    def make(agent: SyntheticAgent) -> Change:
        paths = [agent.known_file() for _ in range(files)]
        content = {path: agent.listing() for path in paths}

        def change(n: int, step: ObservedStep) -> ObservedStep:
            path = agent.rng.choice(paths) if lines else paths[n % files]
            more = {"line": agent.rng.randrange(200)} if lines else {}
            return _did(step, agent.call(0, path, **more), content[path])

        return change

    return make


def _in_vain(result: Callable[[str], str]) -> Callable[[SyntheticAgent], Change]:
    def make(agent: SyntheticAgent) -> Change:
        def change(_n: int, step: ObservedStep) -> ObservedStep:
            path = agent.file()
            return _did(step, agent.call(0, path), result(path))

        return change

    return make


def _empty_searches(agent: SyntheticAgent) -> Change:
    return lambda _n, step: _did(step, agent.call(3, "src"), "no matches")


def _flaky_tests(agent: SyntheticAgent) -> Change:
    action = agent.call(4, agent.known_file())
    return lambda _n, step: _did(
        step, action, f"{agent.rng.randint(1, 9)} failed, {agent.rng.randint(20, 60)} passed in 2.11s"
    )


def _flip_flop(agent: SyntheticAgent) -> Change:
    path, one, two = agent.known_file(), agent.some(4), agent.some(4)
    pair = (agent.call(1, path, old=one, new=two), agent.call(1, path, old=two, new=one))
    return lambda n, step: _did(step, pair[n % 2], "ok")


def _edit_and_undo(agent: SyntheticAgent) -> Change:
    path, one, two = agent.known_file(), agent.some(4), agent.some(4)
    calls = (
        agent.call(1, path, old=one, new=two),
        agent.call(4, path),
        agent.call(2, "", command=f"git checkout {path}"),
    )
    results = ("ok", "1 failed in 0.31s", "Updated 1 path from the index")
    return lambda n, step: _did(step, calls[n % 3], results[n % 3])


def _no_tools(agent: SyntheticAgent) -> Change:
    return lambda _n, step: replace(step, actions=(), result=None, text=step.text or agent.say())


def _promises(agent: SyntheticAgent) -> Change:
    return lambda _n, step: replace(
        step, actions=(), result=None, text=f"I will now look at {agent.known_file()} and {agent.some(3)}."
    )


def _silence(_agent: SyntheticAgent) -> Change:
    return lambda _n, step: replace(step, text="")


def _cost(times: float) -> Callable[[SyntheticAgent], Change]:
    def make(agent: SyntheticAgent) -> Change:
        agent.priced = True
        return lambda _n, step: replace(step, cost=(step.cost or 0.02) * times)

    return make


_SESSION, _LAP = 40, 60


def _same_session(renumbered: bool) -> Callable[[SyntheticAgent], Change]:
    """One session, drawn once, is gone through again and again."""

    def make(agent: SyntheticAgent) -> Change:
        agent.session_length = agent.session_length or 40
        length = _SESSION
        session = [agent.usual() for _ in range(length)]

        def change(n: int, step: ObservedStep) -> ObservedStep:
            at = session[n % length]
            text = f"Run {n // length}, step {n % length}: {at.text}" if renumbered and at.text else at.text
            return replace(at, text=text, time=step.time, session=f"again {n // length}")

        return change

    return make


def _long_lap(agent: SyntheticAgent) -> Change:
    """A lap of 60 steps in a stream without sessions, with its own words each time."""
    agent.session_length = 0
    lap = [agent.usual_call() for _ in range(_LAP)]
    return lambda n, step: _did(step, *lap[n % _LAP], text=agent.say() if agent.rng.random() < 0.5 else "")


def _text(kind: str) -> Callable[[SyntheticAgent], Change]:
    def make(agent: SyntheticAgent) -> Change:
        say = TEXTS[kind](agent)
        return lambda n, step: replace(step, text=say(n, step.text or agent.say()))

    return make


def _hex(agent: SyntheticAgent, bits: int) -> str:
    return f"{agent.rng.getrandbits(bits):x}"


def _in_language(language: str) -> Callable[[SyntheticAgent], Change]:
    def make(agent: SyntheticAgent) -> Change:
        agent.languages = ("en",)
        return lambda _n, step: replace(step, text=agent.say(language))

    return make


_A, _B = CHOSEN, HELD_OUT
COLLAPSES: Sequence[Collapse] = (
    Collapse("same call", "pid", _A, _same_call(lambda a, _n: f"started, pid {a.rng.randrange(30_000)}")),
    Collapse("same call", "uuid", _A, _same_call(lambda a, _n: f"job {uuid.UUID(int=a.rng.getrandbits(128))} queued")),
    Collapse("same call", "hash", _B, _same_call(lambda a, _n: f"[{_hex(a, 40)}] nothing to do")),
    Collapse("same call", "counter", _B, _same_call(lambda _a, n: f"attempt {n + 1} of the day: refused")),
    Collapse("same call", "address", _B, _same_call(lambda a, _n: f"<Worker at 0x{_hex(a, 44)}> is busy"), 0.8),
    Collapse("near call", "port", _A, _near_calls(lambda _a, n: f"serve --port {8000 + n}", "address in use")),
    Collapse("near call", "file", _B, _near_calls(lambda _a, n: f"cat out/log_{n}.txt", "No such file or directory")),
    Collapse("near call", "seed", _B, _near_calls(lambda a, _n: f"fuzz --seed {_hex(a, 32)}", "no crash"), 0.9),
    Collapse("round", "three, literal", _A, _round(3, literal=True)),
    Collapse("round", "five, other words", _A, _round(5, literal=False)),
    Collapse("round", "four, other words", _B, _round(4, literal=False)),
    Collapse("round", "seven, literal", _B, _round(7, literal=True), 0.9),
    Collapse("re-reading", "six in turn", _A, _rereading(6, lines=False)),
    Collapse("re-reading", "twelve, any line", _B, _rereading(12, lines=True)),
    Collapse("in vain", "missing files", _A, _in_vain(lambda path: f"{path}: no such file")),
    Collapse("in vain", "denied", _B, _in_vain(lambda path: f"error: permission denied: '{path}'")),
    Collapse("in vain", "empty searches", _B, _empty_searches),
    Collapse("undoing", "there and back", _A, _flip_flop),
    Collapse("undoing", "edit, test, checkout", _B, _edit_and_undo),
    Collapse("undoing", "only tests", _B, _flaky_tests),
    Collapse("no tools", "none", _A, _no_tools),
    Collapse("no tools", "one in ten", _B, _no_tools, 0.9),
    Collapse("no tools", "promises", _B, _promises),
    Collapse("silence", "97 %", _A, _silence),
    Collapse("silence", "75 %, rising", _B, _silence, 0.85, 60),
    Collapse("cost", "forty times", _A, _cost(40)),
    Collapse("cost", "six times", _B, _cost(6)),
    Collapse("session again", "the same", _A, _same_session(renumbered=False), lead=_SESSION),
    Collapse("session again", "numbered", _B, _same_session(renumbered=True), lead=_SESSION),
    Collapse("session again", "a lap of 60", _B, _long_lap, lead=_LAP),
    *(Collapse("language", name, _A if name in ("de", "zh") else _B, _in_language(name)) for name in LANGUAGES),
    Collapse("emoji", "one in varied places", _A, _text("emoji")),
    Collapse("emoji", "more and more", _B, _text("many emoji"), 0.97, 80),
    Collapse("emoji", "two in three", _B, _text("emoji"), 0.67),
    Collapse("gibberish", "letters", _A, _text("letters")),
    Collapse("gibberish", "shuffled words", _A, _text("shuffled")),
    Collapse("gibberish", "base64", _B, _text("base64")),
    Collapse("gibberish", "mixed scripts", _B, _text("scripts")),
    Collapse("gibberish", "word salad", _B, _text("salad")),
    Collapse("stuck inside a text", "a word", _A, _text("stuck word")),
    Collapse("stuck inside a text", "a clause", _B, _text("stuck clause")),
    Collapse("thanks", "to the user", _A, _text("thanks")),
    Collapse("thanks", "to itself, rising", _B, _text("self-thanks"), 0.95, 60),
    Collapse("thanks", "praise", _B, _text("praise"), 0.9),
    Collapse("refusal", "plain", _A, _text("refusal"), 0.9),
    Collapse("refusal", "one in three", _A, _text("refusal"), 0.34),
    Collapse("refusal", "one in five", _B, _text("indirect refusal"), 0.2),
    Collapse("refusal", "other languages", _B, _text("foreign refusal"), 0.8),
    Collapse("apology", "plain", _A, _text("apology"), 0.9),
    Collapse("apology", "in other words", _B, _text("other apology"), 0.7),
    Collapse("phrase", "in front", _A, _text("phrase in front"), 0.95),
    Collapse("phrase", "rising", _A, _text("phrase inside"), 0.95, 80),
    Collapse("phrase", "inside, 70 %", _B, _text("phrase inside"), 0.7),
    Collapse("phrase", "at the end", _B, _text("phrase at the end"), 0.9),
    Collapse("template", "six slots", _A, _text("six slots")),
    Collapse("template", "status", _B, _text("status slots"), 0.9),
    Collapse("template", "two in turn", _B, _text("two templates")),
    Collapse("word", "one", _A, _text("word")),
    Collapse("word", "a subject", _B, _text("subject"), 0.85),
    Collapse("word", "one in three of four", _B, _text("word"), 0.75),
    Collapse("tic", "boxed", _A, _text("boxed")),
    Collapse("tic", "signature", _B, _text("signature"), 0.9),
    Collapse("tic", "roles", _B, _text("roles"), 0.6),
    Collapse("tic", "marks", _B, _text("marks"), 0.9),
    Collapse("vocabulary", "twelve words", _A, _text("twelve words")),
    Collapse("vocabulary", "forty words, rising", _B, _text("forty words"), 0.97, 100),
    Collapse("length", "five times", _A, _text("long")),
    Collapse("length", "two words", _B, _text("two words"), 0.9),
    Collapse("code", "all of it", _A, _text("all code")),
    Collapse("code", "a block each time", _B, _text("block"), 0.9),
    Collapse("questions", "one at the end", _A, _text("question")),
    Collapse("questions", "nothing else", _B, _text("only questions"), 0.9),
    Collapse("waiting", "standing by", _A, _text("standing by")),
    Collapse("waiting", "in varied words", _B, _text("waiting"), 0.9),
    Collapse("done", "in varied words", _A, _text("done")),
    Collapse("done", "without tools", _B, lambda agent: _both(_no_tools(agent), _text("done")(agent)), 0.95),
    Collapse("shouting", "capitals", _A, _text("capitals")),
    Collapse("shouting", "exclamations", _B, _text("exclamations"), 0.9),
    Collapse("parrot", "its own last text", _A, _text("parrot")),
    Collapse("parrot", "an old text", _B, _text("old text"), 0.9),
    Collapse("counting", "numbers", _A, _text("numbers")),
    Collapse("counting", "letters", _B, _text("alphabet")),
)


def _both(one: Change, two: Change) -> Change:
    return lambda n, step: two(n, one(n, step))


def labelled(half: str, seed: int) -> Iterator[tuple[str, ObservedStep]]:
    """Healthy work of a half, one agent a seed."""
    return healthy_steps(random.Random(f"healthy {half} {seed}"), half)
