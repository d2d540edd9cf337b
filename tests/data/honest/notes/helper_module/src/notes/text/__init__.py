"""Small helpers for text."""

from notes.text.folding import *  # noqa: F403
from notes.text.folding import __all__ as _folding

__all__ = [*_folding]
