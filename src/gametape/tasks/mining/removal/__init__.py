"""Cut functions out of a tree."""
