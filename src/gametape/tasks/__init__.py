"""Tasks: load, write, check out and export task directories, and make them (mining, katas, worlds)."""
