"""Limit how often something happens."""
