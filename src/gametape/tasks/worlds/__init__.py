"""Procedural tool worlds in memory: long chains of small jobs, a few of which turn on a rule."""
