"""Verdicts by replay: calls recorded against the reference, sent to an attempt, and compared on the host."""
