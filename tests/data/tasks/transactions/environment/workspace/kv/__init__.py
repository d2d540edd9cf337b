"""A store for values by key."""
