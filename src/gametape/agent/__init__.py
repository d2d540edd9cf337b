"""The agent: its loop, its tools, and what it knows of where it stands."""
