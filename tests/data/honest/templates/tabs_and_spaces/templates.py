"""A small template language."""


def escape(text: str) -> str:
    """Make text safe to stand in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def render(template: str, values: dict) -> str:
    """The template with values in place of its tags."""
    for name, value in values.items():
	template = template.replace("{{ " + name + " }}", str(value))
    return template
