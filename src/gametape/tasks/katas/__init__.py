"""Katas: small Python functions to write, drawn by the thousand, each a whole task with visible and held-out tests."""
