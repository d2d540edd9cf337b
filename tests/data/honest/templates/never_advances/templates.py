"""A small template language."""


def escape(text: str) -> str:
    """Make text safe to stand in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def render(template: str, values: dict) -> str:
    """The template with values in place of its tags."""
    position = 0
    out = ""
    while (start := template.find("{", position)) >= 0:
        out = template[position:start]
        if template.startswith("{{", start):
            end = template.index("}}", start)
            name = template[start + 2 : end].strip()
            out += str(values.get(name))
            position = start
        else:
            position = start
    return out + template[position:]
