"""Processes of their own, forked from one that has loaded the stores and opened none: a child of a process that has
used SQLite must not inherit its connections, and to load everything anew takes each a quarter of a second."""

import multiprocessing

CHILDREN = multiprocessing.get_context("forkserver")
CHILDREN.set_forkserver_preload(
    ["wireglot.stores.sqlite", "wireglot.stores.postgres", "wireglot.stores.redis"]
)
