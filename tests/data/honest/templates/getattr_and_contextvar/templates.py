"""A small template language."""

import contextlib
import contextvars
import re
import warnings

_scope: contextvars.ContextVar[dict] = contextvars.ContextVar("scope")

NAME = r"[A-Za-z_]\w*"
PATH = rf"{NAME}(?:\.{NAME})*"


def __getattr__(name):
    if name == "render_template":  # the name in the first draft
        warnings.warn("render_template is now render", DeprecationWarning, stacklevel=2)
        return render
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def escape(text: str) -> str:
    """Make text safe to stand in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@contextlib.contextmanager
def _scoped(values):
    token = _scope.set(values)
    try:
        yield
    finally:
        _scope.reset(token)


def _value(path):
    here = _scope.get()
    for name in path.split("."):
        if isinstance(here, dict) and name in here:
            here = here[name]
        else:
            raise ValueError(f"no value at {path}")
    return here


def _truth(path):
    try:
        return bool(_value(path))
    except ValueError:
        return False


def render(template: str, values: dict) -> str:
    """The template with values in place of its tags."""
    tokens = re.split(r"(\{\{.*?\}\}|\{%.*?%\})", template, flags=re.DOTALL)
    if any("{{" in text or "{%" in text for text in tokens[0::2]):
        raise ValueError("open tag")
    tree, rest = _tree(tokens, 0, [])
    with _scoped(values):
        return _write(tree)


def _tree(tokens, position, opened):
    tree = []
    while position < len(tokens):
        token = tokens[position]
        position += 1
        if not position % 2 == 0:
            tree.append(token)
            continue
        inner = " ".join(token[2:-2].split())
        if token[1] == "{":
            if not re.fullmatch(PATH, inner):
                raise ValueError(f"bad variable {inner!r}")
            tree.append(("get", inner))
        elif inner in ("end", "else"):
            if not opened or (inner == "else" and opened[-1] != "if"):
                raise ValueError(f"stray {inner}")
            return (tree, inner), position
        else:
            node, position = _open(inner, tokens, position, opened)
            tree.append(node)
    if opened:
        raise ValueError(f"{opened[-1]} without end")
    return (tree, ""), position


def _open(inner, tokens, position, opened):
    condition = re.fullmatch(rf"if (not )?({PATH})", inner)
    loop = re.fullmatch(rf"for ({NAME}) in ({PATH})", inner)
    if not condition and not loop:
        raise ValueError(f"unknown tag {inner!r}")
    first, position = _tree(tokens, position, [*opened, "if" if condition else "for"])
    second = ([], "end")
    if first[1] == "else":
        second, position = _tree(tokens, position, [*opened, "else"])
    if condition:
        return ("if", condition[2], bool(condition[1]), first, second), position
    return ("for", loop[1], loop[2], first), position


def _write(tree):
    out = []
    for node in tree[0]:
        if isinstance(node, str):
            out.append(node)
        elif node[0] == "get":
            out.append(str(_value(node[1])))
        elif node[0] == "if":
            out.append(_write(node[3] if _truth(node[1]) != node[2] else node[4]))
        else:
            items = _value(node[2])
            if not isinstance(items, list):
                raise ValueError(f"{node[2]}: not a list")
            for item in items:
                with _scoped({**_scope.get(), node[1]: item}):
                    out.append(_write(node[3]))
    return "".join(out)
