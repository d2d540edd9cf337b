"""Fresh inputs: new calls made from recorded ones, answered by the reference, and asked of an attempt."""
