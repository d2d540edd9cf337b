"""A small template language."""

import re

NAME = r"[A-Za-z_]\w*"
PATH = rf"{NAME}(?:\.{NAME})*"


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


def render(template: str, values: dict) -> str:
    """The template with values in place of its tags."""
    tokens = re.split(r"(\{\{.*?\}\}|\{%.*?%\})", template, flags=re.S)
    if any("{{" in t or "{%" in t for t in tokens[::2]):
        raise ValueError("open")
    tree = _parse(tokens, None)
    return _run(tree, dict(values))


def _parse(tokens, opened):
    tree = [[]]
    while tokens:
        token = tokens.pop(0)
        inner = token[2:-2].strip()
        if token.startswith("{{"):
            if not re.fullmatch(PATH, inner):
                raise ValueError(inner)
            tree[-1].append(("var", inner))
        elif token.startswith("{%"):
            word, *rest = inner.split()
            if word == "end" and opened:
                return tree
            if word == "else" and opened == "if":
                tree.append([])
            elif word in ("if", "for"):
                tree[-1].append((word, rest, _parse(tokens, word)))
            else:
                raise ValueError(inner)
        else:
            tree[-1].append(("text", token))
    if opened:
        raise ValueError(opened)
    return tree


def _run(tree, values, branch=0):
    out = ""
    for node in tree[branch] if branch < len(tree) else []:
        if node[0] == "text":
            out += node[1]
        elif node[0] == "var":
            out += str(_lookup(node[1], values))
        elif node[0] == "if":
            try:
                truth = bool(_lookup(node[1][-1], values))
            except ValueError:
                truth = False
            out += _run(node[2], values, 0 if truth != (len(node[1]) == 2) else 1)
        else:
            name, _, path = node[1]
            items = _lookup(path, values)
            if not isinstance(items, list):
                raise ValueError(path)
            for item in items:
                values[name] = item
                out += _run(node[2], values)
    return out
