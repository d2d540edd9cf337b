"""Durable agent work: goals, threads, heartbeats, the vault of notes, and the outbox."""
