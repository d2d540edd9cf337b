"""The version of the package, which records carry."""

VERSION = "0.1.0"
