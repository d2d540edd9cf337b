"""A small template language."""

import re


def escape(text: str) -> str:
    """Make text safe to stand in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# à faire: les conditions, puis les boucles
def render(template: str, values: dict) -> str:
    """The template with values in place of its tags."""
    def replaced(found):
        here = values
        for name in found[1].split("."):
            if not isinstance(here, dict) or name not in here:
                raise ValueError(f"{found[1]} leads nowhere")
            here = here[name]
        return str(here)

    text = re.sub(r"\{\{\s*([^\W\d]\w*(?:\.[^\W\d]\w*)*)\s*\}\}", replaced, template)
    if "{{" in re.sub(r"\{\{.*?\}\}", "", template) or re.search(r"\{\{\s*\}\}", template):
        raise ValueError("braces that are not closed, or empty")
    return text
