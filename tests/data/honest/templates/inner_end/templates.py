"""A small template language."""

import re


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

    def loop(m):
        items = _lookup(m[2], values)
        if not isinstance(items, list):
            raise ValueError(m[2])
        return "".join(render(m[3], {**values, m[1]: item}) for item in items)

    def condition(m):
        try:
            truth = bool(_lookup(m[2], values))
        except ValueError:
            truth = False
        yes, _, no = m[3].partition("{% else %}")
        return render(yes if truth != bool(m[1]) else no, values)

    template = re.sub(r"{%\s*for (\w+) in ([\w.]+)\s*%}(.*?){%\s*end\s*%}", loop, template, flags=re.S)
    template = re.sub(r"{%\s*if (not )?([\w.]+)\s*%}(.*?){%\s*end\s*%}", condition, template, flags=re.S)
    template = re.sub(r"{{\s*([A-Za-z_][\w.]*)\s*}}", lambda m: str(_lookup(m[1], values)), template)
    if "{{" in template or "{%" in template:
        raise ValueError("left over tags")
    return template
