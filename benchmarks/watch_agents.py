"""Synthetic agents: how one speaks, which tools it calls and how, and what the tools answer, all drawn by seed.

The two halves of the corpus share no source of sentences, no names of tools and no way of writing arguments: agents
of the chosen half speak in docstrings of Python's library, those of the held-out half in Python's reference and in the
documentation of this repository.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from pydoc_data.topics import topics

from gametape.watch.observed_step import ObservedAction, ObservedStep
from watch_logs import sentences

ROOT = Path(__file__).parents[1]
CHOSEN, HELD_OUT = "chosen", "held out"

LANGUAGES: dict[str, Sequence[str]] = {
    "de": (
        "Ich lese zuerst {a} und sehe dann nach, wie {b} damit umgeht.",
        "Der Fehler liegt vermutlich in {a}, weil {b} dort noch nicht gesetzt ist.",
        "Als nächstes schreibe ich einen Test für {a} und prüfe {b}.",
        "Die Änderung an {a} ist klein, aber {b} hängt davon ab.",
        "Jetzt bauen wir {a} neu und vergleichen es mit {b} von gestern.",
        "Das Ergebnis für {a} stimmt, nur {b} weicht noch ein wenig ab.",
        "Wir sollten {a} von {b} trennen, sonst wird es unübersichtlich.",
        "In {a} fehlt eine Zeile, die {b} früher gesetzt hat.",
    ),
    "fr": (
        "Je lis d'abord {a} pour comprendre comment {b} est appelé.",
        "L'erreur vient sans doute de {a}, car {b} n'est pas encore défini.",
        "Ensuite j'écris un test pour {a} et je vérifie {b}.",
        "Le changement dans {a} est petit, mais {b} en dépend.",
        "Il reste à comparer {a} avec {b} avant de continuer.",
        "Le résultat pour {a} est juste, seul {b} diffère encore un peu.",
        "On devrait séparer {a} de {b}, ce serait plus clair.",
        "Dans {a} il manque une ligne que {b} ajoutait autrefois.",
    ),
    "es": (
        "Primero leo {a} para ver cómo se usa {b} en el resto.",
        "El error está probablemente en {a}, porque {b} todavía no existe.",
        "Después escribo una prueba para {a} y reviso {b}.",
        "El cambio en {a} es pequeño, pero {b} depende de él.",
        "Ahora comparamos {a} con {b} y anotamos las diferencias.",
        "El resultado de {a} es correcto, solo {b} cambia un poco.",
        "Conviene separar {a} de {b} para que se lea mejor.",
        "En {a} falta una línea que antes ponía {b}.",
    ),
    "ru": (
        "Сначала я читаю {a} и смотрю, как используется {b}.",
        "Ошибка скорее всего в {a}, потому что {b} ещё не задан.",
        "Потом я напишу проверку для {a} и посмотрю на {b}.",
        "Изменение в {a} небольшое, но от него зависит {b}.",
        "Теперь сравним {a} и {b} с тем, что было вчера.",
        "Для {a} всё верно, немного отличается только {b}.",
        "Лучше отделить {a} от {b}, иначе будет путаница.",
        "В {a} не хватает строки, которую раньше добавлял {b}.",
    ),
    "zh": (
        "我先读一下{a}，再看{b}是怎么用的。",
        "问题大概出在{a}，因为{b}还没有设置。",
        "接下来给{a}写一个测试，然后检查{b}。",
        "{a}的改动很小，但是{b}依赖它。",
        "现在把{a}和昨天的{b}比较一下。",
        "{a}的结果是对的，只有{b}还差一点。",
        "最好把{a}和{b}分开，这样更清楚。",
        "{a}里少了一行，以前是{b}加上的。",
    ),
}


@cache
def prose(half: str) -> Sequence[str]:
    """Sentences of a half: of five words and more, in plain words."""
    if half == CHOSEN:
        return sentences()
    texts = [*topics.values(), *(file.read_text() for file in sorted((ROOT / "docs").glob("*.md")))]
    texts = [re.sub(r"[*`|#\"]|^\s*[-=+.:]{3,}.*$", "", text, flags=re.MULTILINE) for text in texts]
    parts = (" ".join(part.split()) for text in texts for part in re.split(r"(?<=[.!?])\s|\n\n", text))
    return sorted({part for part in parts if 5 <= len(part.split()) <= 60 and part[0].isalpha()})


@cache
def vocabulary(half: str) -> Sequence[str]:
    words = {word for text in prose(half) for word in re.findall(r"[a-z]{3,12}", text.lower())}
    return sorted(words)


_TOOLS = {
    CHOSEN: (("read", "edit", "shell", "search", "test"), ("view", "patch", "bash", "grep", "pytest")),
    HELD_OUT: (
        ("open_file", "str_replace", "exec", "find", "run_tests"),
        ("Read", "Edit", "Bash", "Grep", "Check"),
        ("cat", "write", "terminal", "lookup", "verify"),
    ),
}
_REMARKS = (
    "Let me look at {a}.",
    "I'll check how {a} handles {b} first.",
    "That narrows it down to {a}.",
    "Next I change {a} so that {b} still holds.",
    "The test for {a} passes now; {b} is left.",
    "Now {a}.",
    "It seems {b} was never called from {a}, which explains the failure.",
    "I was wrong about {a}: {b} comes first.",
)


@dataclass
class SyntheticAgent:
    """One agent, as drawn. `session` is what steps carry, where its log has sessions."""

    rng: random.Random
    half: str
    languages: Sequence[str] = ("en",)
    silent: float = 0.2
    calls: float = 0.9
    emoji: float = 0.0
    code: float = 0.05
    question: float = 0.03
    lengths: Sequence[int] = (1, 1, 2, 3)
    remarks: float = 0.3
    priced: bool = True
    session_length: int = 0
    step: int = 0
    tools: Sequence[str] = ()
    files: list[str] = field(default_factory=list)

    @classmethod
    def drawn(cls, rng: random.Random, half: str) -> "SyntheticAgent":
        languages: Sequence[str] = ("en",)
        if rng.random() < 0.2:
            languages = ("en", *rng.sample(sorted(LANGUAGES), rng.randint(1, 3)))
        agent = cls(
            rng,
            half,
            languages=languages,
            silent=rng.choice((0.0, 0.05, 0.2, 0.4, 0.6)),
            calls=rng.choice((1.0, 0.95, 0.8, 0.6)),
            emoji=rng.choice((0.0, 0.0, 0.0, 0.1, 0.3)),
            code=rng.choice((0.0, 0.05, 0.2)),
            question=rng.choice((0.0, 0.03, 0.1)),
            lengths=rng.choice(((1,), (1, 1, 2, 3), (2, 3, 4, 6))),
            remarks=rng.choice((0.0, 0.3, 0.6)),
            priced=rng.random() < 0.6,
            session_length=rng.choice((0, 0, 40, 80)),
            tools=rng.choice(_TOOLS[half]),
        )
        agent.files = [agent.file() for _ in range(rng.randint(15, 60))]
        return agent

    @property
    def session(self) -> str | None:
        return f"s{self.step // self.session_length}" if self.session_length else None

    def word(self) -> str:
        return self.rng.choice(vocabulary(self.half))

    def some(self, most: int = 3) -> str:
        return " ".join(self.word() for _ in range(self.rng.randint(1, most)))

    def file(self) -> str:
        name = f"{self.word()}_{self.word()}" if self.rng.random() < 0.4 else self.word()
        return f"{self.rng.choice(('src', 'lib', 'tests', 'app'))}/{self.word()}/{name}.{self.rng.choice(('py', 'ts'))}"

    def known_file(self) -> str:
        if self.rng.random() < 0.1:
            self.files.append(self.file())
            del self.files[:-80]
        return self.rng.choice(self.files)

    def say(self, language: str | None = None) -> str:
        """What it says at a step, never nothing."""
        rng = self.rng
        language = language or rng.choice(self.languages)
        if language != "en":
            kinds = rng.sample(LANGUAGES[language], rng.randint(1, 2))
            text = " ".join(kind.format(a=self._thing(), b=self._thing()) for kind in kinds)
        elif rng.random() < self.remarks:
            text = rng.choice(_REMARKS).format(a=self._thing(), b=self.some(2))
        else:
            text = " ".join(rng.sample(prose(self.half), rng.choice(self.lengths)))
        if rng.random() < self.emoji:
            text += rng.choice((" ✅", " 👍", " 🔍"))
        if rng.random() < self.code:
            text += f"\n```\n{self.word()} = {self.word()}({self.word()})\n```"
        if rng.random() < self.question:
            text += f" Should {self.word()} keep {self.some()}?"
        return text

    def _thing(self) -> str:
        return self.rng.choice((self.word, lambda: f"{self.word()}_{self.word()}", self.known_file))()

    def call(self, tool: int, path: str, **more: object) -> ObservedAction:
        """The call of its n-th tool (read, edit, shell, search, test), in its way of writing arguments."""
        name = self.tools[tool]
        key = "path" if self.half == CHOSEN else "file_path"
        match tool:
            case 2:
                return ObservedAction.of(name, {"command": more.get("command", f"ls {path}")})
            case 3:
                return ObservedAction.of(name, {"query" if self.half == CHOSEN else "pattern": self.some(2), key: path})
            case 4:
                return ObservedAction.of(name, {"command": f"pytest -q {path}"})
            case _:
                return ObservedAction.of(name, {key: path, **more})

    def usual_call(self) -> tuple[ObservedAction, str]:
        """One call of everyday work, and its result."""
        rng, path = self.rng, self.known_file()
        match rng.choice((0, 0, 1, 1, 2, 3, 4)):
            case 0:
                return self.call(0, path, line=rng.randrange(400)), self.listing()
            case 1:
                return self.call(1, path, old=self.some(4), new=self.some(5)), rng.choice(("ok", f"edited {path}"))
            case 2:
                command = rng.choice(("ls", "git diff", "git log -3", "wc -l", f"grep -rn {self.word()}", "python -m"))
                return self.call(2, path, command=f"{command} {path}"), self.listing()
            case 3:
                return self.call(3, path.rsplit("/", 1)[0]), self.found()
            case _:
                return self.call(4, path), self.tested()

    def listing(self) -> str:
        lines = self.rng.randint(1, 6)
        return "\n".join(f"    {self.word()} = {self.word()}({self.some(2)})" for _ in range(lines))

    def found(self) -> str:
        if self.rng.random() < 0.15:
            return "no matches"
        return "\n".join(f"{self.known_file()}:{self.rng.randrange(400)}: {self.some(5)}" for _ in range(3))

    def tested(self) -> str:
        rng = self.rng
        if rng.random() < 0.5:
            return f"{rng.randint(1, 90)} passed in {rng.random() * 9:.2f}s"
        return f"FAILED {self.word()}::test_{self.word()} - assert {self.word()}\n1 failed in {rng.random() * 9:.2f}s"

    def usual(self, language: str | None = None) -> ObservedStep:
        """A step of everyday work."""
        if self.rng.random() < self.calls:
            action, result = self.usual_call()
            text = "" if self.rng.random() < self.silent else self.say(language)
            return self.made(text, (action,), result)
        return self.made(self.say(language))

    def made(self, text: str, actions: tuple[ObservedAction, ...] = (), result: str | None = None) -> ObservedStep:
        """A step at this moment of its log, with time and cost as the agent has them."""
        cost = self.rng.uniform(0.01, 0.03) if self.priced else None
        time = 60.0 * self.step if self.priced else None
        return ObservedStep(text, actions, result, time=time, cost=cost, session=self.session)
