"""A small template language."""

import re
from dataclasses import dataclass, field

NAME = r"[A-Za-z_]\w*"
PATH = rf"{NAME}(?:\.{NAME})*"
_TAG = re.compile(r"\{\{(?P<variable>.*?)\}\}|\{%(?P<block>.*?)%\}|(?P<broken>\{\{|\{%)|(?P<text>\{|[^{]+)", re.DOTALL)


def escape(text: str) -> str:
    """Make text safe to stand in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _lookup(path, values):
    here = values
    for name in path.split("."):
        if not isinstance(here, dict) or name not in here:
            raise ValueError(f"nothing at {path}")
        here = here[name]
    return here


@dataclass
class Frame:
    """An open block. `parts` is what comes into it now."""

    kind: str
    path: str = ""
    name: str = ""
    negated: bool = False
    parts: list = field(default_factory=list)
    first: list | None = None

    def closed(self):
        if self.kind == "for":
            return ("for", self.name, self.path, self.parts)
        then, otherwise = (self.parts, []) if self.first is None else (self.first, self.parts)
        return ("if", self.path, self.negated, then, otherwise)


def _parse(template: str) -> list:
    stack = [Frame("top")]
    for found in _TAG.finditer(template):
        kind, here = found.lastgroup, stack[-1]
        if kind == "text":
            here.parts.append(("text", found["text"]))
        elif kind == "broken":
            raise ValueError("an open tag")
        elif kind == "variable":
            path = found["variable"].strip()
            if not re.fullmatch(PATH, path):
                raise ValueError(f"not a path: {path!r}")
            here.parts.append(("variable", path))
        else:
            _block(found["block"].split(), stack)
    if len(stack) > 1:
        raise ValueError(f"{stack[-1].kind} without end")
    return stack[0].parts


def _block(words: list[str], stack: list[Frame]) -> None:
    match words:
        case ["if", path] if re.fullmatch(PATH, path):
            stack.append(Frame("if", path))
        case ["if", "not", path] if re.fullmatch(PATH, path):
            stack.append(Frame("if", path, negated=True))
        case ["for", name, "in", path] if re.fullmatch(NAME, name) and re.fullmatch(PATH, path):
            stack.append(Frame("for", path, name))
        case ["else"] if stack[-1].kind == "if" and stack[-1].first is None:
            stack[-1].first, stack[-1].parts = stack[-1].parts, []
        case ["end"] if len(stack) > 1:
            node = stack.pop().closed()
            stack[-1].parts.append(node)
        case _:
            raise ValueError(f"cannot stand here: {' '.join(words)}")


def render(template: str, values: dict) -> str:
    """The template with values in place of its tags."""
    return "".join(_run(_parse(template), values))


def _run(parts, values):
    for part in parts:
        match part:
            case "text", text:
                yield text
            case "variable", path:
                yield str(_lookup(path, values))
            case "if", path, negated, then, otherwise:
                try:
                    truth = bool(_lookup(path, values))
                except ValueError:
                    truth = False
                yield from _run(then if truth != negated else otherwise, values)
            case "for", name, path, body:
                items = _lookup(path, values)
                if type(items) is not list:
                    raise ValueError(f"not a list: {path}")
                for item in items:
                    yield from _run(body, {**values, name: item})
