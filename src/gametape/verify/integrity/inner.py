"""Python texts inside Python texts: what `exec`, `eval`, `compile` and `python -c` are given as constants."""

from collections.abc import Iterator

from gametape.verify.integrity.code import Code, parse


def with_inner(code: Code, depth: int = 3) -> Iterator[Code]:
    """A text and the constant texts in it that it runs as Python: `exec`, `eval`, `compile`, `python -c`."""
    yield code
    if not depth:
        return
    for node, name in code.calls:
        text: str | None = None
        if (
            name in ("exec", "eval", "compile", "runpy.run_path", "codeop.compile_command", "timeit.timeit")
            and node.args
        ):
            value = code.folded(node.args[0])
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        elif node.args and "-c" in (words := code.texts(node.args[0])):
            text = next(iter(words[words.index("-c") + 1 :]), None)
        if isinstance(text, str) and len(text) > 3 and (inner := parse(code.path, text, code.line_of(node), code)):
            yield from with_inner(inner, depth - 1)
