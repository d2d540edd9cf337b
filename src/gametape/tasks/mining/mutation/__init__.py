"""Small wrong changes to a function."""
