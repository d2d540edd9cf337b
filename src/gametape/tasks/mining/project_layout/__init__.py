"""Detect the layout of a project: its files, packages, tests and requirements."""
