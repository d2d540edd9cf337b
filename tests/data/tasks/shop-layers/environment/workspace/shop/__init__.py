"""A shop that sells in several regions."""
