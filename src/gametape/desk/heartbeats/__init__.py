"""Heartbeats: an agent is asked on a schedule or on an event, and costs no tokens while nothing happens."""
