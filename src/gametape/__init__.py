"""gametape trains and runs autonomous coding agents on feedback that can be checked."""

__version__ = "0.1.0"
