"""Monitors of long-running behaviour, breakers, cost, confidence and traces."""
