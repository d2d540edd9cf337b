"""Training on a Ray cluster: samplers and ranks as actors, and nothing lost when one of them dies."""
