"""A small template language."""

import functools
import re


def escape(text: str) -> str:
    """Make text safe to stand in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_TAG = re.compile(r"\{\{(.*?)\}\}|\{%(.*?)%\}", re.DOTALL)
_NAME = r"[^\W\d]\w*"
_PATH = rf"{_NAME}(?:\.{_NAME})*"
_MISSING = object()


def _find(path, values):
    for name in path.split("."):
        if not isinstance(values, dict) or name not in values:
            return _MISSING
        values = values[name]
    return values


def _must(path, values):
    found = _find(path, values)
    if found is _MISSING:
        raise ValueError(f"nothing at {path}")
    return found


def _items(path, values):
    found = _must(path, values)
    if not isinstance(found, list):
        raise ValueError(f"{path} is no list")
    return found


def _true(path, values):
    found = _find(path, values)
    return found is not _MISSING and bool(found)


class _Compiler:
    def __init__(self):
        self.lines = ["def run(v0, out):", "    pass"]
        self.blocks = []  # "if", "else" or "for"
        self.scopes = 1

    def emit(self, line):
        self.lines.append("    " * (len(self.blocks) + 1) + line)

    def text(self, text):
        if "{{" in text or "{%" in text:
            raise ValueError(f"not closed: {text!r}")
        self.emit(f"out.append({text!r})")

    def variable(self, inner):
        if not re.fullmatch(_PATH, inner):
            raise ValueError(f"not a path: {inner!r}")
        self.emit(f"out.append(str(must({inner!r}, v{self.scopes - 1})))")

    def block(self, inner):
        scope = f"v{self.scopes - 1}"
        if inner == "end":
            if not self.blocks:
                raise ValueError("end of nothing")
            self.emit("pass")
            self.scopes -= self.blocks.pop() == "for"
        elif inner == "else":
            if not self.blocks or self.blocks[-1] != "if":
                raise ValueError("else of nothing")
            self.emit("pass")
            self.blocks[-1] = "else"
            self.lines.append("    " * len(self.blocks) + "else:")
        elif found := re.fullmatch(rf"if (not )?({_PATH})", inner):
            self.emit(f"if {found[1] or ''}true({found[2]!r}, {scope}):")
            self.blocks.append("if")
        elif found := re.fullmatch(rf"for ({_NAME}) in ({_PATH})", inner):
            self.emit(f"for item in items({found[2]!r}, {scope}):")
            self.blocks.append("for")
            self.emit(f"v{self.scopes} = {{**{scope}, {found[1]!r}: item}}")
            self.scopes += 1
        else:
            raise ValueError(f"unknown tag {inner!r}")


@functools.lru_cache(maxsize=128)
def _compiled(template):
    compiler, at = _Compiler(), 0
    for found in _TAG.finditer(template):
        compiler.text(template[at : found.start()])
        if found[1] is not None:
            compiler.variable(found[1].strip())
        else:
            compiler.block(" ".join(found[2].split()))
        at = found.end()
    compiler.text(template[at:])
    if compiler.blocks:
        raise ValueError("a block has no end")
    names = {"must": _must, "items": _items, "true": _true}
    exec(compile("\n".join(compiler.lines), "<template>", "exec"), names)
    return names["run"]


def render(template: str, values: dict) -> str:
    """The template with values in place of its tags."""
    out = []
    _compiled(template)(values, out)
    return "".join(out)
