"""Text to ids and back, such that no text ever becomes a special token."""
