"""What lies below are tasks. Their tests are run by the verifier, never by the project's own test run."""

collect_ignore_glob = ["*"]
