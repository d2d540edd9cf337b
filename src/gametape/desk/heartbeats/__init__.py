"""Heartbeats: an agent that is asked again and again, and costs nothing while nothing happens."""
