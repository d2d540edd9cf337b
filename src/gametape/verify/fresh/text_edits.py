"""Change a text so that it stays what it is: numbers, words and parts change, format and alphabet stay."""

import datetime
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from gametape.verify.fresh.corpus import TOKEN, PlaceValues

_SEPARATORS = re.compile(r"\n|[,;:|/.\-_]|\s+")
DATE = re.compile(r"(?<!\d)[0-9]{4}-[0-9]{2}-[0-9]{2}(?!\d)")
_TIME = re.compile(r"(?<![\d:])[0-9]{2}:[0-9]{2}(?::[0-9]{2})?(?![\d:])")
_NUMBER = re.compile(f"{DATE.pattern}|{_TIME.pattern}|[0-9]+")
_LONGEST = 4000
_TRIES = 4
_LOWER, _UPPER = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class TextEdits:
    """Edits of the texts at one place."""

    seen: PlaceValues
    rng: random.Random

    def edit(self, text: str) -> str:
        """Another text, if some edit gives one."""
        if self.seen.is_choice:
            return self.rng.choice(self.seen.texts)
        if DATE.fullmatch(text) or _TIME.fullmatch(text):
            return self.new_number(text)
        for _ in range(6):
            changed = self.rng.choice(_EDITS)(self, text)
            if changed != text and len(changed) <= _LONGEST and (changed or self.rng.random() < 0.2):
                return changed
        return text

    def renew(self, text: str) -> str:
        """A text with other numbers and other free words in all places; where it has none, another text."""
        new_words = {
            word: self._unseen_word(word)
            for word in dict.fromkeys(TOKEN.findall(text))
            if word[0].isalpha() and word not in self.seen.common_words
        }
        numbered = _NUMBER.sub(lambda match: self.new_number(match.group()), text)
        new = "".join(new_words.get(token, token) for token in TOKEN.findall(numbered))
        return new if new != text else self.edit(text)

    def other(self) -> str:
        return self.rng.choice(self.seen.texts) if self.seen.texts else ""

    def new_number(self, digits: str) -> str:
        """A number of about the same size; a leading zero stays one. A date stays a date, a time a time."""
        if DATE.fullmatch(digits):
            return shifted_date(digits, self.rng.choice((-366, -31, -1, 1, 2, 7, 29, self.rng.randint(-900, 900))))
        if _TIME.fullmatch(digits):
            parts = [self.rng.randrange(24), self.rng.randrange(60), self.rng.randrange(60)]
            return ":".join(f"{part:02}" for part in parts[: digits.count(":") + 1])
        if len(digits) > 12:
            return "".join(self.rng.choice("0123456789") for _ in digits)
        value = int(digits)
        padded = digits.startswith("0") and len(digits) > 1
        kind = self.rng.random()
        if kind < 0.35:
            new = max(0, value + self.rng.choice((-2, -1, 1, 2, 3)))
        else:
            top = 10 ** len(digits) - 1
            new = self.rng.randint(0 if padded or len(digits) == 1 else 10 ** (len(digits) - 1), top)
        text = str(new)
        return text.zfill(len(digits)) if padded or len(text) < len(digits) else text[: max(len(digits), 1)]

    def new_word(self, word: str) -> str:
        """A word of the same writing: another one of the same place, or other letters."""
        others = [other for other in self.seen.words if other not in self.seen.common_words and other != word]
        if others and self.rng.random() < 0.4:
            return _written_like(self.rng.choice(others), word)
        return "".join(self._new_letter(letter) if self.rng.random() < 0.6 else letter for letter in word)

    def _unseen_word(self, word: str) -> str:
        """A word of the same writing that no text of the place has, if a few tries give one."""
        made = ("".join(map(self._new_letter, word)) for _ in range(_TRIES))
        return next((new for new in made if new not in self.seen.words), word)

    def _new_letter(self, letter: str) -> str:
        for alphabet in (_LOWER, _UPPER):
            if letter in alphabet:
                return self.rng.choice(alphabet)
        alike = [other for other in self.seen.letters if other.isalpha() and ord(other) > 127]
        return self.rng.choice(alike) if alike else letter


def shifted_date(text: str, days: int) -> str:
    """An ISO date some days later; the text itself where it is no date."""
    try:
        return (datetime.date.fromisoformat(text) + datetime.timedelta(days=days)).isoformat()
    except (ValueError, OverflowError):
        return text


def _written_like(word: str, pattern: str) -> str:
    if pattern.isupper():
        return word.upper()
    if pattern.islower():
        return word.lower()
    return word.capitalize() if pattern[:1].isupper() and pattern[1:].islower() else word


def _number(edits: TextEdits, text: str) -> str:
    """Another number in place of one."""
    numbers = [*_NUMBER.finditer(text)]
    if not numbers:
        return text
    match = edits.rng.choice(numbers)
    return text[: match.start()] + edits.new_number(match.group()) + text[match.end() :]


def _all_numbers(edits: TextEdits, text: str) -> str:
    return _NUMBER.sub(lambda match: edits.new_number(match.group()), text)


def _word(edits: TextEdits, text: str) -> str:
    """Another word, everywhere in the text, so that what refers to each other still does."""
    free = [word for word in {*TOKEN.findall(text)} if word[0].isalpha() and word not in edits.seen.common_words]
    if not free:
        return text
    word = edits.rng.choice(sorted(free))
    new = edits.new_word(word)
    return "".join(new if token == word else token for token in TOKEN.findall(text))


def _common_word(edits: TextEdits, text: str) -> str:
    """A unit or keyword in place of another one."""
    tokens = TOKEN.findall(text)
    places = [index for index, token in enumerate(tokens) if token in edits.seen.common_words]
    others = sorted(edits.seen.common_words)
    if not places or len(others) < 2:
        return text
    tokens[edits.rng.choice(places)] = edits.rng.choice(others)
    return "".join(tokens)


def _separator(text: str, rng: random.Random) -> str | None:
    found = sorted(set(_SEPARATORS.findall(text)))
    return rng.choice(found) if found else None


def _parts(edits: TextEdits, text: str) -> str:
    """The parts between separators: one less, one twice, two exchanged, or one of another text."""
    separator = _separator(text, edits.rng)
    if separator is None:
        return text
    parts = text.split(separator)
    rng = edits.rng
    at = rng.randrange(len(parts))
    action = rng.randrange(5)
    if action == 0:
        del parts[at]
    elif action == 1:
        parts.insert(at, rng.choice(parts))
    elif action == 2:
        other = rng.randrange(len(parts))
        parts[at], parts[other] = parts[other], parts[at]
    else:
        donors = edits.other().split(separator)
        if action == 3:
            parts[at] = rng.choice(donors)
        else:
            parts.insert(at + 1, rng.choice(donors))
    return separator.join(parts)


def _kind(token: str) -> str:
    return "a" if token[0].isalpha() else "0" if token[0].isdigit() else " " if token[0].isspace() else token


def _splice(edits: TextEdits, text: str) -> str:
    """The beginning of one text and the end of another, where both have tokens of the same kind."""
    ours, theirs = TOKEN.findall(text), TOKEN.findall(edits.other())
    if len(ours) < 2 or len(theirs) < 2:
        return text
    cuts = [
        (at, to)
        for at in range(1, len(ours))
        for to in range(1, len(theirs))
        if _kind(ours[at]) == _kind(theirs[to]) and _kind(ours[at - 1]) == _kind(theirs[to - 1])
    ][:400]
    if not cuts:
        return text
    at, to = edits.rng.choice(cuts)
    return "".join(ours[:at] + theirs[to:])


def _joined(edits: TextEdits, text: str) -> str:
    """Two texts as one, with a separator that one of them has."""
    other = edits.other()
    separator = _separator(text, edits.rng) or _separator(other, edits.rng)
    return text if separator is None else text + separator + other


def _case(edits: TextEdits, text: str) -> str:
    """A word in the other case, where both cases were seen."""
    letters = edits.seen.letters
    if not (any(letter.isupper() for letter in letters) and any(letter.islower() for letter in letters)):
        return text
    tokens = TOKEN.findall(text)
    words = [index for index, token in enumerate(tokens) if token[0].isalpha() and token not in edits.seen.common_words]
    if not words:
        return text
    at = edits.rng.choice(words)
    tokens[at] = edits.rng.choice((tokens[at].upper(), tokens[at].lower(), tokens[at].capitalize()))
    return "".join(tokens)


def _long(edits: TextEdits, text: str) -> str:
    """Many parts, where texts have parts."""
    separator = _separator(text, edits.rng)
    if separator is None:
        return text
    parts = [part for part in text.split(separator) if part]
    return (
        separator.join(_all_numbers(edits, edits.rng.choice(parts)) for _ in range(edits.rng.randint(4, 9)))
        if parts
        else text
    )


def _token(edits: TextEdits, text: str) -> str:
    """One token of the text alone, or the text without its ends."""
    tokens = [token for token in TOKEN.findall(text) if not token.isspace()]
    if len(tokens) < 2:
        return text
    return edits.rng.choice(tokens) if edits.rng.random() < 0.5 else text[1:-1].strip()


_EDITS: tuple[Callable[[TextEdits, str], str], ...] = (
    *(_number, _number, _all_numbers, _all_numbers),
    *(_word, _word, _word, _common_word, _parts, _parts, _parts),
    *(_splice, _splice, _joined, _case, _long, _token),
)
