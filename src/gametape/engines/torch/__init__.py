"""The embedded engine: many rollouts through one network that the trainer shares, on a CPU or one GPU."""
