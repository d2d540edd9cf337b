"""What `gametape demo` performs, act by act."""
