"""From a workspace to a verdict: run its tests in sandboxes, score it, and flag attempts to forge the result."""
