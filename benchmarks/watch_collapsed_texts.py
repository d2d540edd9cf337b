"""What collapsed agents say: each kind takes an agent, draws what it needs, and makes of the n-th text another one."""

import base64
from collections.abc import Callable, Sequence

from watch_agents import SyntheticAgent

Say = Callable[[int, str], str]


def _put_in(agent: SyntheticAgent, text: str, what: str) -> str:
    words = text.split(" ")
    at = agent.rng.randint(0, len(words))
    return " ".join([*words[:at], what, *words[at:]])


_EMOJI = "😀🎉🚀✨🔥💡🙌🌟😅🤖🎯💪🥳🌈🐛🧠📈🛠🙏😎🍀🎈🦄🌻⚡🏆"


def _emoji(agent: SyntheticAgent) -> Say:
    return lambda _n, text: _put_in(agent, text, agent.rng.choice(_EMOJI))


def _many_emoji(agent: SyntheticAgent) -> Say:
    return lambda n, text: text + " " + "".join(agent.rng.choices(_EMOJI, k=1 + n // 20))


def _letters(agent: SyntheticAgent) -> Say:
    rng = agent.rng
    letters = "abcdefghijklmnopqrstuvwxyz"
    return lambda _n, text: " ".join("".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in text.split())


def _shuffled(agent: SyntheticAgent) -> Say:
    def say(_n: int, text: str) -> str:
        words = (text + " " + agent.say("en")).split()
        agent.rng.shuffle(words)
        return " ".join(words)

    return say


def _base64(agent: SyntheticAgent) -> Say:
    return lambda _n, text: base64.b64encode(agent.rng.randbytes(20 + len(text) // 2)).decode()


def _scripts(agent: SyntheticAgent) -> Say:
    rng = agent.rng
    ranges = ((0x61, 26), (0x3B1, 24), (0x430, 32), (0x5D0, 26), (0x4E00, 900), (0x3041, 80), (0xC0, 60))

    def word() -> str:
        start, size = rng.choice(ranges)
        return "".join(chr(start + rng.randrange(size)) for _ in range(rng.randint(1, 6)))

    return lambda _n, text: " ".join(word() for _ in range(5 + len(text.split()) // 2))


def _salad(agent: SyntheticAgent) -> Say:
    return lambda _n, text: " ".join(agent.word() for _ in range(6 + len(text.split())))


def _stuck_word(agent: SyntheticAgent) -> Say:
    return lambda _n, text: text + " " + " ".join([agent.word()] * agent.rng.randint(15, 60))


def _stuck_clause(agent: SyntheticAgent) -> Say:
    return lambda _n, text: text + " " + " ".join([f"and then {agent.some(2)} again,"] * agent.rng.randint(6, 20))


def _one_of(lines: Sequence[str], keep: bool = True) -> Callable[[SyntheticAgent], Say]:
    """One of the lines, with words of its own in the slots, before, after or instead of the text."""

    def make(agent: SyntheticAgent) -> Say:
        def say(_n: int, text: str) -> str:
            line = agent.rng.choice(lines).format(a=agent.word(), b=agent.some(3))
            if not keep:
                return line
            return f"{line} {text}" if agent.rng.random() < 0.5 else f"{text} {line}"

        return say

    return make


_THANKS = (
    "Thank you so much for {b}!",
    "Many thanks, that {a} was kind.",
    "I really appreciate {b}.",
    "Thanks again for your patience with {a}.",
    "I am grateful for {b}.",
    "With gratitude for {a}.",
    "Much obliged for {b}, thank you.",
)
_SELF_THANKS = (
    "Thanks to me, {b} is in order.",
    "I thank myself for {a}.",
    "Thank you, me, for {b}.",
    "My gratitude goes to my own {a}.",
    "I appreciate how I did {b}.",
    "Grateful to myself for {a} today.",
)
_PRAISE = (
    "What a wonderful {a}!",
    "Excellent work on {b}.",
    "This is amazing, truly brilliant {a}.",
    "Great job, {b} looks fantastic.",
    "Perfect! {b} is superb.",
    "Outstanding {a}, well done.",
)
_REFUSALS = (
    "I cannot continue with {b}.",
    "I'm unable to help with {a}.",
    "I give up on {b}.",
    "I won't do this to {a}.",
    "I must decline {b}.",
)
_INDIRECT = (
    "Sorry, but {b} is not something I can do.",
    "I'm afraid I can't assist with {a}.",
    "I would rather not touch {b}.",
    "It is beyond my abilities to fix {a}.",
    "I am not able to go on with {b}.",
    "I have to stop here; {a} is impossible for me.",
)
_FOREIGN = (
    "Das kann ich leider nicht tun, {a} geht nicht.",
    "Je ne peux pas continuer avec {a}, désolé.",
    "Lo siento, no puedo ayudar con {a}.",
    "К сожалению, я не могу продолжить {a}.",
    "抱歉，我无法完成{a}。",
    "申し訳ありませんが、{a}はできません。",
    "Mi dispiace, non posso proseguire con {a}.",
    "Desculpe, não posso continuar com {a}.",
    "Het spijt me, ik kan {a} niet doen.",
)
_APOLOGIES = (
    "I am so sorry about {a}.",
    "I apologize for {b}.",
    "My apologies, {a} was my mistake.",
    "Sorry, my bad about {b}.",
    "Please forgive me for {a}.",
)
_OTHER_APOLOGIES = (
    "I deeply regret {b}.",
    "Apologies once more for {a}.",
    "Pardon me, {b} was wrong of me.",
    "I owe you an apology for {a}.",
    "Entschuldigung wegen {a}.",
    "Sorry for the confusion over {b}.",
)
_WAITING = (
    "Waiting for further instructions on {a}.",
    "Let me know how you want {b}.",
    "I am ready when you are with {a}.",
    "Awaiting your input about {b}.",
    "On standby until {a} arrives.",
    "Please tell me what to do about {b}.",
)
_DONE = (
    "The task is complete and {b} works.",
    "Everything is finished, including {a}.",
    "All done: {b}.",
    "{a} has been completed successfully.",
    "Nothing is left to do for {b}.",
    "Mission accomplished, {a} is done.",
)
_QUESTIONS = (
    "Should I look at {b}?",
    "Do you want {a} first?",
    "Is {b} what you meant?",
    "What about {a}?",
    "Could you confirm {b}?",
    "Which {a} do you prefer?",
)


def _phrase(where: str) -> Callable[[SyntheticAgent], Say]:
    def make(agent: SyntheticAgent) -> Say:
        phrase = agent.rng.choice(
            (
                "the honest thing to say here is",
                "as any careful reader will know",
                "in the grand scheme of things",
                f"with all due {agent.word()} to the {agent.word()}",
            )
        )
        if where == "front":
            return lambda _n, text: f"{phrase.capitalize()}: {text}"
        if where == "end":
            return lambda _n, text: f"{text} And so it goes, {phrase}."
        return lambda _n, text: _put_in(agent, text, phrase)

    return make


def _slots(*templates: str) -> Callable[[SyntheticAgent], Say]:
    def make(agent: SyntheticAgent) -> Say:
        def say(n: int, _text: str) -> str:
            slots = {name: agent.some() for name in "abcdef"}
            return templates[n % len(templates)].format(n=n, **slots)

        return say

    return make


def _word(agent: SyntheticAgent) -> Say:
    return lambda _n, text: _put_in(agent, text, "tapestry")


_GARDEN = ("compost", "seedling", "pruning", "mulch", "orchard", "greenhouse", "tomatoes", "perennials", "topsoil")


def _subject(agent: SyntheticAgent) -> Say:
    def say(_n: int, text: str) -> str:
        for word in agent.rng.sample(_GARDEN, 3):
            text = _put_in(agent, text, word)
        return text

    return say


def _of_words(count: int) -> Callable[[SyntheticAgent], Say]:
    def make(agent: SyntheticAgent) -> Say:
        words = [agent.word() for _ in range(count)]
        return lambda _n, text: " ".join(agent.rng.choice(words) for _ in range(8 + len(text.split()) // 2))

    return make


def _long(agent: SyntheticAgent) -> Say:
    return lambda _n, text: " ".join([text, *(agent.say("en") for _ in range(9 * max(agent.lengths)))])


def _two_words(agent: SyntheticAgent) -> Say:
    return lambda _n, _text: f"{agent.rng.choice(('Okay', 'Next', 'Fine', 'Then', 'Good'))} {agent.word()}."


def _all_code(_agent: SyntheticAgent) -> Say:
    return lambda _n, text: f"```\n{text}\n```"


def _block(agent: SyntheticAgent) -> Say:
    return lambda _n, text: f"{text}\n```python\n{agent.word()} = {agent.some(3).replace(' ', '.')}\n```"


def _roles(agent: SyntheticAgent) -> Say:
    return lambda _n, text: f"{text}\n<|im_end|>\n<|im_start|>user\n{agent.some(4)}"


def _marks(_agent: SyntheticAgent) -> Say:
    return lambda _n, text: f"~~ {text} ~~"


def _parrot(agent: SyntheticAgent) -> Say:
    said = [agent.say("en")]

    def say(n: int, text: str) -> str:
        if n % 40 == 0:
            said[0] = f"{text} {agent.say('en')}"
        return said[0]

    return say


def _old_text(agent: SyntheticAgent) -> Say:
    said = [agent.say("en") for _ in range(10)]
    return lambda _n, _text: agent.rng.choice(said)


def _numbers(_agent: SyntheticAgent) -> Say:
    return lambda n, _text: " ".join(str(number) for number in range(20 * n, 20 * n + 20))


def _alphabet(agent: SyntheticAgent) -> Say:
    return lambda n, _text: " ".join(chr(97 + (n + at) % 26) for at in range(agent.rng.randint(10, 40)))


TEXTS: dict[str, Callable[[SyntheticAgent], Say]] = {
    "emoji": _emoji,
    "many emoji": _many_emoji,
    "letters": _letters,
    "shuffled": _shuffled,
    "base64": _base64,
    "scripts": _scripts,
    "salad": _salad,
    "stuck word": _stuck_word,
    "stuck clause": _stuck_clause,
    "thanks": _one_of(_THANKS),
    "self-thanks": _one_of(_SELF_THANKS),
    "praise": _one_of(_PRAISE),
    "refusal": _one_of(_REFUSALS, keep=False),
    "indirect refusal": _one_of(_INDIRECT, keep=False),
    "foreign refusal": _one_of(_FOREIGN, keep=False),
    "apology": _one_of(_APOLOGIES),
    "other apology": _one_of(_OTHER_APOLOGIES),
    "phrase in front": _phrase("front"),
    "phrase inside": _phrase("inside"),
    "phrase at the end": _phrase("end"),
    "six slots": _slots("Cycle {n}: checked {a} and found {b}; next I will {c} the {d} so that {e} stays {f}."),
    "status slots": _slots("Status: {a}. Risk: {b}. Next: {c}. Owner: {d}."),
    "two templates": _slots(
        "First I take {a}, then {b}, and in the end {c} for the {d}.",
        "So {a} was about {b}; what remains of it is {c} with {d}.",
    ),
    "word": _word,
    "subject": _subject,
    "boxed": lambda _agent: lambda _n, text: f"\\boxed{{{text}}}",
    "signature": lambda _agent: lambda _n, text: f"{text} Onwards, friend!",
    "roles": _roles,
    "marks": _marks,
    "twelve words": _of_words(12),
    "forty words": _of_words(40),
    "long": _long,
    "two words": _two_words,
    "all code": _all_code,
    "block": _block,
    "question": _one_of(_QUESTIONS),
    "only questions": _one_of(_QUESTIONS, keep=False),
    "standing by": lambda _agent: lambda _n, _text: "Standing by.",
    "waiting": _one_of(_WAITING, keep=False),
    "done": _one_of(_DONE, keep=False),
    "capitals": lambda _agent: lambda _n, text: text.upper(),
    "exclamations": lambda _agent: lambda _n, text: text.replace(".", "!") + "!!",
    "parrot": _parrot,
    "old text": _old_text,
    "numbers": _numbers,
    "alphabet": _alphabet,
}
