"""Notes, kept in a file."""
