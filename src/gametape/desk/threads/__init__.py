"""Threads: conversations with an agent that go on for days, with every message and every file state on disk."""
