"""Engines, which sample tokens (weights on this machine, model servers, scripts), and conversations with models."""
