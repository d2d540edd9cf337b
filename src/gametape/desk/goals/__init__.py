"""Goals: an agent works until a success command, run where the agent has no access, is satisfied."""
