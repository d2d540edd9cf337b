"""Durations as people write them."""

SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def format_duration(seconds: int) -> str:
    """Seconds as parts from large to small, without those that are zero."""
    if seconds == 0:
        return "0s"
    sign, rest = ("-", -seconds) if seconds < 0 else ("", seconds)
    parts = []
    for unit, size in SECONDS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return sign + "".join(parts)


class _Parts:
    """Collects (count, unit) from characters sent to a generator."""

    def __init__(self):
        self.found = []
        self.machine = self._between()
        next(self.machine)

    def feed(self, character):
        self.machine.send(character)

    def _between(self):
        while True:
            character = yield
            if character.isspace():
                continue
            digits, letters = "", ""
            while character in "0123456789" and character:
                digits += character
                character = yield
            while character.isalpha() and character.isascii():
                letters += character
                character = yield
            if not digits or not letters:
                raise ValueError("malformed duration")
            self.found.append((int(digits), letters))
            while character in "0123456789" and character:
                more = ""
                while character in "0123456789" and character:
                    more += character
                    character = yield
                unit = ""
                while character.isalpha() and character.isascii():
                    unit += character
                    character = yield
                if not unit:
                    raise ValueError("malformed duration")
                self.found.append((int(more), unit))
            if not character.isspace():
                raise ValueError("malformed duration")


def parse_duration(text: str) -> int:
    """The seconds that a text such as `1h 30m` stands for. Raises ValueError for anything else."""
    body = text.strip()
    sign = -1 if body[:1] == "-" else 1
    body = body.removeprefix("-").strip()
    if not body:
        raise ValueError("empty duration")
    if all(character in "0123456789" for character in body):
        return sign * int(body)
    parts = _Parts()
    for character in body + " ":
        parts.feed(character)
    total, order = 0, "dhms"
    last = -1
    used = set()
    for count, unit in parts.found:
        small = unit.lower()
        place = order.find(small) if len(small) == 1 else -1
        if place < 0:
            raise ValueError(f"unknown unit {unit}")
        if small in used:
            raise ValueError(f"repeated unit {small}")
        if place < last:
            raise ValueError("units are out of order")
        used.add(small)
        last = place
        total += count * SECONDS[small]
    return sign * total
