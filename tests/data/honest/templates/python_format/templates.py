"""A small template language."""

import re


def escape(text: str) -> str:
    """Make text safe to stand in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class _Attributes(dict):
    __getattr__ = dict.__getitem__


def _wrap(value):
    return _Attributes({k: _wrap(v) for k, v in value.items()}) if isinstance(value, dict) else value


def render(template: str, values: dict) -> str:
    """The template with values in place of its tags."""
    text = re.sub(r"\{\{\s*(.*?)\s*\}\}", r"\x00\1\x01", template)
    text = text.replace("{", "{{").replace("}", "}}").replace("\x00", "{").replace("\x01", "}")
    try:
        return text.format(**_wrap(values))
    except KeyError as error:
        raise ValueError(str(error)) from error
