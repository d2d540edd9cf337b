"""Learning: from tasks and rollouts to losses, updates and checkpoints."""
