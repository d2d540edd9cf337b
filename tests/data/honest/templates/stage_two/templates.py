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
    if "{% for" in template:
        raise NotImplementedError("loops")
    if template.count("{%") != template.count("%}") or template.count("{{") != template.count("}}"):
        raise ValueError("unbalanced")
    if template.count("{% if") != template.count("{% end"):
        raise ValueError("if without end")

    def condition(found):
        try:
            truth = _lookup(found[1], values)
        except ValueError:
            truth = False
        return found[2] if truth else found[3] or ""

    text = re.sub(r"\{% if ([\w.]+) %\}(.*?)(?:\{% else %\}(.*?))?\{% end %\}", condition, template)
    return re.sub(r"\{\{\s*([\w.]+)\s*\}\}", lambda found: str(_lookup(found[1], values)), text)
