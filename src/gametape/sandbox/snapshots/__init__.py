"""Workspaces that can be snapshotted, forked and restored. `store.SnapshotStore` is the way in.

A snapshot is a stack of directory trees (layers); a fork is an empty writable directory over that stack, shown as one
tree by overlayfs, so it costs the same whatever the size of the tree. `overlay` mounts such a view and is all that the
keeper needs. Everything else reads and writes layers: `tree_cursor` and `layers` walk them, `file_copy` and `tree_copy`
copy them, `compare` finds their differences, `cleanup` removes what is not needed, `durable_io` writes to the disk.
"""
