"""Type checker, linter and syntax trees, run so that hostile sources cannot harm or mislead them."""
