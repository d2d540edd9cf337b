"""Workspaces that can be snapshotted, forked and restored. `store.SnapshotStore` is the way in.

A snapshot is a stack of directory trees (layers); a fork is an empty writable directory over that stack, shown as one
tree by overlayfs, so it costs the same whatever the size of the tree. `overlay` mounts such a view and is all that the
keeper needs. Everything else reads and writes layers: `cursor` and `layers` walk them, `files` and `transfer` copy
them, `compare` tells two apart, `sweep` takes away what nobody needs, `durable` is about locks and what is on disk.
"""
