"""A small template language."""

import re

NAME = r"[A-Za-z_]\w*"
PATH = rf"{NAME}(?:\.{NAME})*"
TAGS = re.compile(r"(\{\{.*?\}\}|\{%.*?%\})", re.S)


def escape(text: str) -> str:
    """Make text safe to stand in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def render(template: str, values: dict) -> str:
    """The template with values in place of its tags."""
    tokens = TAGS.split(template)
    if any("{{" in text or "{%" in text for text in tokens[::2]):
        raise ValueError("a tag that is never closed")
    body, ending = _block(iter(tokens))
    if ending:
        raise ValueError(f"{ending} where nothing is open")
    return body(values)


def _lookup(path, values):
    here = values
    for name in path.split("."):
        if not isinstance(here, dict) or name not in here:
            raise ValueError(f"nothing at {path}")
        here = here[name]
    return here


def _block(tokens):
    """Read up to the next else or end; returns a function and which of the two ended it."""
    nodes = []

    def run(values):
        return "".join(node(values) for node in nodes)

    for token in tokens:
        if token.startswith("{{"):
            nodes.append(_variable(token))
        elif token.startswith("{%"):
            tag = token[2:-2].strip()
            if tag in ("else", "end"):
                return run, tag
            nodes.append(_tag(tag, tokens))
        else:
            nodes.append(lambda values, token=token: token)
    return run, None


def _variable(token):
    path = token[2:-2].strip()
    if not re.fullmatch(PATH, path):
        raise ValueError(f"bad variable {token}")
    return lambda values: str(_lookup(path, values))


def _tag(tag, tokens):
    if found := re.fullmatch(rf"if\s+(not\s+)?({PATH})", tag):
        return _if(found[2], bool(found[1]), tokens)
    if found := re.fullmatch(rf"for\s+({NAME})\s+in\s+({PATH})", tag):
        return _for(found[1], found[2], tokens)
    raise ValueError(f"unknown tag {tag}")


def _if(path, negated, tokens):
    then, ending = _block(tokens)
    otherwise = lambda values: ""  # noqa: E731
    if ending == "else":
        otherwise, ending = _block(tokens)
    if ending != "end":
        raise ValueError("if without end")

    def run(values):
        try:
            truth = bool(_lookup(path, values))
        except ValueError:
            truth = False
        return (then if truth is not negated else otherwise)(values)

    return run


def _for(name, path, tokens):
    body, ending = _block(tokens)
    if ending != "end":
        raise ValueError("for without end")

    def run(values):
        items = _lookup(path, values)
        if not isinstance(items, list):
            raise ValueError(f"{path} is no list")
        return "".join(body(values | {name: item}) for item in items)

    return run
