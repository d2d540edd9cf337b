"""Find deleted code in what an agent can read."""
