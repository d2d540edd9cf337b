"""What an agent is asked to do: task directories, and where they come from."""
