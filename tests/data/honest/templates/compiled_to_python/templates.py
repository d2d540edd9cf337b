"""A small template language."""

import functools
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


def _truth(path, values):
    try:
        return bool(_lookup(path, values))
    except ValueError:
        return False


def _items(path, values):
    items = _lookup(path, values)
    if not isinstance(items, list):
        raise ValueError(f"{path} is not a list")
    return items


@functools.lru_cache(maxsize=128)
def _compiled(template: str):
    """The template as a function. Paths are checked against PATH, so nothing foreign gets into the source."""
    lines = ["def run(values, out):"]
    stack: list[str] = []

    def emit(line: str) -> None:
        lines.append("    " * (len(stack) + 1) + line)

    for position, token in enumerate(re.split(r"(\{\{.*?\}\}|\{%.*?%\})", template, flags=re.DOTALL)):
        if position % 2 == 0:
            if re.search(r"\{\{|\{%", token):
                raise ValueError("unclosed tag")
            emit(f"out.append({token!r})")
            continue
        inner = " ".join(token[2:-2].split())
        if token.startswith("{{"):
            if not re.fullmatch(PATH, inner):
                raise ValueError(f"not a path: {inner!r}")
            emit(f"out.append(str(_lookup({inner!r}, values)))")
        elif found := re.fullmatch(rf"if (not )?({PATH})", inner):
            emit(f"if {'not ' if found[1] else ''}_truth({found[2]!r}, values):")
            stack.append("if")
            emit("pass")
        elif found := re.fullmatch(rf"for ({NAME}) in ({PATH})", inner):
            emit(f"for item in _items({found[2]!r}, values):")
            stack.append("for")
            emit("outer = values")
            emit(f"values = {{**values, {found[1]!r}: item}}")
        elif inner == "else" and stack and stack[-1] == "if":
            stack.pop()
            emit("else:")
            stack.append("else")
            emit("pass")
        elif inner == "end" and stack:
            kind = stack[-1]
            if kind == "for":
                emit("values = outer")
            stack.pop()
        else:
            raise ValueError(f"unexpected tag {inner!r}")
    if stack:
        raise ValueError(f"{stack[-1]} is not ended")
    namespace = {"_lookup": _lookup, "_truth": _truth, "_items": _items, "str": str}
    exec(compile("\n".join(lines), "<template>", "exec"), namespace)  # noqa: S102
    return namespace["run"]


def render(template: str, values: dict) -> str:
    """The template with values in place of its tags."""
    out: list[str] = []
    _compiled(template)(values, out)
    return "".join(out)
