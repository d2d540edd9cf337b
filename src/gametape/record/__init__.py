"""Trajectories on disk, the append-only log, the lock between processes, and file trees as values."""
