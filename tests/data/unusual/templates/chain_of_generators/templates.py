"""A small template language."""

import re
from collections import ChainMap


def escape(text: str) -> str:
    """Make text safe to stand in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_SPLIT = re.compile(r"(\{\{.*?\}\}|\{%.*?%\})", re.S)
_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class Nowhere(ValueError):
    pass


def _look(path, scope):
    here = scope
    for name in path.split("."):
        if not isinstance(here, (dict, ChainMap)) or name not in here:
            raise Nowhere(f"{path} leads nowhere")
        here = here[name]
    return here


def _path(text):
    if not _PATH.fullmatch(text):
        raise ValueError(f"{text!r} is not a path")
    return text


def _tokens(template):
    for number, token in enumerate(_SPLIT.split(template)):
        if number % 2 == 0:
            if "{{" in token or "{%" in token:
                raise ValueError("a tag is not closed")
            yield "text", token
        elif token[1] == "{":
            yield "show", _path(token[2:-2].strip())
        else:
            yield "tag", token[2:-2].split()


def _parse(tokens, closing):
    """Returns a list of functions from a scope to text, and the word that ended it."""
    made = []
    for kind, value in tokens:
        if kind == "text":
            made.append(lambda scope, value=value: iter([value]))
        elif kind == "show":
            made.append(lambda scope, value=value: iter([str(_look(value, scope))]))
        else:
            match value:
                case ["if", "not", path]:
                    made.append(_condition(tokens, _path(path), False))
                case ["if", path]:
                    made.append(_condition(tokens, _path(path), True))
                case ["for", name, "in", path] if "." not in name:
                    made.append(_loop(tokens, _path(name), _path(path)))
                case [("else" | "end") as word] if word in closing:
                    return made, word
                case _:
                    raise ValueError(f"unexpected tag {' '.join(value)!r}")
    if closing:
        raise ValueError("a block has no end")
    return made, ""


def _run(made, scope):
    for part in made:
        yield from part(scope)


def _condition(tokens, path, wanted):
    then, word = _parse(tokens, ("else", "end"))
    otherwise = _parse(tokens, ("end",))[0] if word == "else" else []

    def run(scope):
        try:
            holds = bool(_look(path, scope))
        except Nowhere:
            holds = False
        yield from _run(then if holds is wanted else otherwise, scope)

    return run


def _loop(tokens, name, path):
    body, _ = _parse(tokens, ("end",))

    def run(scope):
        items = _look(path, scope)
        if not isinstance(items, list):
            raise ValueError(f"{path} is not a list")
        for item in items:
            yield from _run(body, ChainMap({name: item}, scope))

    return run


def render(template: str, values: dict) -> str:
    """The template with values in place of its tags."""
    made, _ = _parse(_tokens(template), ())
    return "".join(_run(made, ChainMap(values)))
