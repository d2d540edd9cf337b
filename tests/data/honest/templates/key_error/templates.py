"""A small template language."""

import re


def escape(text: str) -> str:
    """Make text safe to stand in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def render(template: str, values: dict) -> str:
    """The template with values in place of its tags."""

    def value(m):
        here = values
        for part in m.group(1).split("."):
            here = here[part]
        return str(here)

    return re.sub(r"\{\{\s*(\S+?)\s*\}\}", value, template)
