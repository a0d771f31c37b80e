"""A folder far away as a store, over one stream of bytes: a server beside it, and its client.

`python3 -m sojourn.storage.served FOLDER` speaks on its standard input and output, with the
standard library alone; `client.ServedStore` is the other end. Many calls are under way at once:
bodies travel in pieces, so that a small call does not wait for a large one.

What does not belong here: how the stream comes about.
"""
