"""Attention over key and value blocks, one file per way to compute it; all of them make the same `AttentionPlanner`."""
