"""A small template language."""

import re

TAG = re.compile(r"(\{\{.*?\}\}|\{%.*?%\})", re.DOTALL)
NAME = r"[^\W\d]\w*"
PATH = rf"{NAME}(?:\.{NAME})*"


def escape(text: str) -> str:
    """Make text safe to stand in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def render(template: str, values: dict) -> str:
    """The template with values in place of its tags."""
    return _Reader(template).read().render(values)


class _Text:
    def __init__(self, text: str) -> None:
        self.text = text

    def render(self, values: dict) -> str:
        return self.text


class _Variable:
    def __init__(self, path: str) -> None:
        self.path = path

    def render(self, values: dict) -> str:
        return str(_look_up(self.path, values))


class _Sequence:
    def __init__(self, parts: list) -> None:
        self.parts = parts

    def render(self, values: dict) -> str:
        return "".join(part.render(values) for part in self.parts)


class _Condition:
    def __init__(self, path: str, negated: bool, then: _Sequence, otherwise: _Sequence) -> None:
        self.path = path
        self.negated = negated
        self.then = then
        self.otherwise = otherwise

    def render(self, values: dict) -> str:
        try:
            holds = bool(_look_up(self.path, values))
        except ValueError:
            holds = False
        return (self.then if holds != self.negated else self.otherwise).render(values)


class _Loop:
    def __init__(self, name: str, path: str, body: _Sequence) -> None:
        self.name = name
        self.path = path
        self.body = body

    def render(self, values: dict) -> str:
        items = _look_up(self.path, values)
        if not isinstance(items, list):
            raise ValueError(f"{self.path} is not a list")
        return "".join(self.body.render({**values, self.name: item}) for item in items)


class _Reader:
    """Reads a template into its parts, tag by tag."""

    def __init__(self, template: str) -> None:
        self.tokens = TAG.split(template)
        for text in self.tokens[::2]:
            if "{{" in text or "{%" in text:
                raise ValueError(f"a tag is not closed: {text!r}")

    def read(self) -> _Sequence:
        whole, end = self._sequence()
        if end:
            raise ValueError(f"{end} without a beginning")
        return whole

    def _sequence(self) -> tuple[_Sequence, str]:
        """The parts up to the next `else` or `end`, and which of the two it was."""
        parts: list = []
        while self.tokens:
            token = self.tokens.pop(0)
            if token.startswith("{{") and token.endswith("}}"):
                parts.append(_Variable(_matched(PATH, token)[0]))
            elif token.startswith("{%") and token.endswith("%}"):
                inner = " ".join(token[2:-2].split())
                if inner in ("else", "end"):
                    return _Sequence(parts), inner
                parts.append(self._block(inner))
            else:
                parts.append(_Text(token))
        return _Sequence(parts), ""

    def _block(self, tag: str) -> _Condition | _Loop:
        if loop := re.fullmatch(rf"for ({NAME}) in ({PATH})", tag):
            body, end = self._sequence()
            self._expect_end(tag, end)
            return _Loop(loop[1], loop[2], body)
        if condition := re.fullmatch(rf"if (not )?({PATH})", tag):
            then, end = self._sequence()
            otherwise = _Sequence([])
            if end == "else":
                otherwise, end = self._sequence()
            self._expect_end(tag, end)
            return _Condition(condition[2], bool(condition[1]), then, otherwise)
        raise ValueError(f"unknown tag: {tag!r}")

    def _expect_end(self, tag: str, found: str) -> None:
        if found != "end":
            raise ValueError(f"{tag!r} has no end")


def _matched(pattern: str, token: str) -> re.Match:
    found = re.fullmatch(pattern, token[2:-2].strip())
    if found is None:
        raise ValueError(f"not a variable: {token!r}")
    return found


def _look_up(path: str, values: dict) -> object:
    here: object = values
    for name in path.split("."):
        if not isinstance(here, dict) or name not in here:
            raise ValueError(f"{path} leads nowhere")
        here = here[name]
    return here
