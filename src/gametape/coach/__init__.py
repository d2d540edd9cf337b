"""Where a rollout went wrong, what to say there in one line, and whether saying it helps."""
