"""The page that `gametape studio` serves: runs as they go on, read from their files."""
