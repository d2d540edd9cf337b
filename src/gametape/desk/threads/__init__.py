"""Conversations with an agent that go on for days: each word of them is on disk, and so is every file they touched."""
