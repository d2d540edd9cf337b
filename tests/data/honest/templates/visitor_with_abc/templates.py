"""A small template language."""

import abc
import re
from collections import ChainMap
from collections.abc import Mapping
from functools import singledispatch

NAME = r"[A-Za-z_]\w*"
PATH = rf"{NAME}(?:\.{NAME})*"


def escape(text: str) -> str:
    """Make text safe to stand in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Node(abc.ABC):
    @abc.abstractmethod
    def __repr__(self) -> str: ...


class Text(Node):
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return f"Text({self.text!r})"

    def __eq__(self, other):
        return self.text == other.text if isinstance(other, Text) else NotImplemented

    __hash__ = None


class Variable(Node):
    def __init__(self, path):
        self.path = path

    def __repr__(self):
        return f"Variable({self.path})"


class Block(Node):
    def __init__(self, kind, path, name="", negated=False):
        self.kind, self.path, self.name, self.negated = kind, path, name, negated
        self.branches = [[]]

    def __repr__(self):
        return f"Block({self.kind}, {self.branches})"


def _parse(template):
    root = Block("root", "")
    open_blocks = [root]
    for token in re.split(r"(\{\{.*?\}\}|\{%.*?%\})", template, flags=re.S):
        here = open_blocks[-1].branches[-1]
        if token.startswith("{{") and token.endswith("}}"):
            path = token[2:-2].strip()
            if not re.fullmatch(PATH, path):
                raise ValueError(f"no variable: {token!r}")
            here.append(Variable(path))
        elif token.startswith("{%") and token.endswith("%}") and len(token) >= 4:
            tag = re.sub(r"\s+", " ", token[2:-2].strip())
            if (m := re.fullmatch(rf"if (not )?({PATH})", tag)) or (m := re.fullmatch(rf"for ({NAME}) in ({PATH})", tag)):
                block = Block(tag[:2], m[2], m[1] or "", negated=tag.startswith("if not "))
                here.append(block)
                open_blocks.append(block)
            elif tag == "else" and open_blocks[-1].kind == "if" and len(open_blocks[-1].branches) == 1:
                open_blocks[-1].branches.append([])
            elif tag == "end" and len(open_blocks) > 1:
                open_blocks.pop()
            else:
                raise ValueError(f"what is {tag!r}?")
        elif "{{" in token or "{%" in token:
            raise ValueError("a tag is not closed")
        elif token:
            here.append(Text(token))
    if open_blocks != [root]:
        raise ValueError(f"not ended: {open_blocks[-1]!r}")
    return root


def _look_up(path, values):
    for name in path.split("."):
        if not isinstance(values, Mapping) or name not in values:
            raise ValueError(f"{path} leads nowhere")
        values = values[name]
    return values


@singledispatch
def _render(node, values):
    raise TypeError(node)


@_render.register
def _(node: Text, values):
    return node.text


@_render.register
def _(node: Variable, values):
    return str(_look_up(node.path, values))


@_render.register
def _(nodes: list, values):
    return "".join(_render(node, values) for node in nodes)


@_render.register
def _(node: Block, values):
    if node.kind == "root":
        return _render(node.branches[0], values)
    if node.kind == "if":
        try:
            holds = bool(_look_up(node.path, values))
        except ValueError:
            holds = False
        chosen = 0 if holds != node.negated else 1
        return _render(node.branches[chosen], values) if chosen < len(node.branches) else ""
    items = _look_up(node.path, values)
    if not isinstance(items, list):
        raise ValueError(f"{node.path} is not a list")
    return "".join(_render(node.branches[0], values.new_child({node.name: item})) for item in items)


def render(template: str, values: dict) -> str:
    """The template with values in place of its tags."""
    return _render(_parse(template), ChainMap(values))
