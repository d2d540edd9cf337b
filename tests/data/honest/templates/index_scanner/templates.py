"""A small template language."""


def escape(text: str) -> str:
    """Make text safe to stand in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class TemplateError(ValueError):
    """What is wrong with a template, and where."""


def render(template: str, values: dict) -> str:
    """The template with values in place of its tags."""
    text, position, stopped_by = _render(template, 0, values, wanted=True)
    if stopped_by:
        raise TemplateError(f"{stopped_by} at {position} has nothing to end")
    return text


def _is_name(text):
    return text.isidentifier() or (text.isascii() and text.replace("_", "a").isalnum() and not text[0].isdigit())


def _path(text):
    path = text.strip()
    if not path or not all(part and _is_name(part) for part in path.split(".")):
        raise TemplateError(f"{text!r} is not a path")
    return path


def _get(path, values):
    found = values
    for part in path.split("."):
        try:
            if not isinstance(found, dict):
                raise KeyError(part)
            found = found[part]
        except KeyError:
            raise TemplateError(f"{path} is missing") from None
    return found


def _next_tag(template, start):
    starts = [at for at in (template.find("{{", start), template.find("{%", start)) if at >= 0]
    if not starts:
        return None
    begin = min(starts)
    closing = "}}" if template[begin + 1] == "{" else "%}"
    end = template.find(closing, begin + 2)
    if end < 0:
        raise TemplateError(f"the tag at {begin} is open")
    return begin, end, template[begin + 2 : end], closing == "}}"


def _render(template, position, values, wanted):
    """Render from a position to the next `else` or `end`; with `wanted` false only read."""
    out = []
    while True:
        tag = _next_tag(template, position)
        if tag is None:
            out.append(template[position:])
            return "".join(out), len(template), None
        begin, end, inner, is_variable = tag
        out.append(template[position:begin])
        position = end + 2
        if is_variable:
            path = _path(inner)
            if wanted:
                out.append(str(_get(path, values)))
            continue
        words = inner.split()
        if words in (["else"], ["end"]):
            return "".join(out), position, words[0]
        text, position = _block(template, position, words, values, wanted)
        out.append(text)


def _block(template, position, words, values, wanted):
    if words[:1] == ["if"] and len(words) in (2, 3):
        negated = len(words) == 3
        if negated and words[1] != "not":
            raise TemplateError(" ".join(words))
        path = _path(words[-1])
        try:
            holds = bool(_get(path, values)) != negated
        except TemplateError:
            holds = negated
        yes, position, stop = _render(template, position, values, wanted and holds)
        no = ""
        if stop == "else":
            no, position, stop = _render(template, position, values, wanted and not holds)
        if stop != "end":
            raise TemplateError("an if has no end")
        return (yes if holds else no), position
    if len(words) == 4 and words[0] == "for" and words[2] == "in" and _is_name(words[1]):
        path = _path(words[3])
        start = position
        _, position, stop = _render(template, start, values, False)
        if stop != "end":
            raise TemplateError("a for has no end")
        if not wanted:
            return "", position
        items = _get(path, values)
        if not isinstance(items, list):
            raise TemplateError(f"{path} is not a list")
        return "".join(_render(template, start, {**values, words[1]: item}, True)[0] for item in items), position
    raise TemplateError(f"unknown tag {' '.join(words)!r}")
