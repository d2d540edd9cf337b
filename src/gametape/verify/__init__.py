"""Decide what a workspace is worth, and see whoever tries to decide it instead."""
