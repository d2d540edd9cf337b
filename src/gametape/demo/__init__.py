"""What `gametape demo` runs: its stages, the training of both arms, its state on disk and its output."""
