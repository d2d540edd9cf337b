"""Interpreters for code bases, in which everything is installed but the code base itself."""
