"""A small template language."""

from jinja2 import Environment, StrictUndefined


def escape(text: str) -> str:
    """Make text safe to stand in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def render(template: str, values: dict) -> str:
    """The template with values in place of its tags."""
    environment = Environment(undefined=StrictUndefined)
    return environment.from_string(template.replace("{% end %}", "{% endif %}")).render(values)
