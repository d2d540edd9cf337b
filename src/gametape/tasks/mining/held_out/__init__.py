"""Hold part of a suite out from the agent: split the failing tests, and trim the test files."""
