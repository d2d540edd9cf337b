"""What lies below are solutions of tasks. They are verified, never collected or run by the project's own test run."""

collect_ignore_glob = ["*"]
