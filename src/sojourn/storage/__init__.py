"""Snapshots, logs and leases in a store: a folder, or any bucket that obstore can open.

What does not belong here: what a task or a cloud is. This layer knows paths, bytes and times.
"""
