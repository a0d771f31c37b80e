"""Data and interfaces: standard library only, no I/O.

What does not belong here: anything that opens a file, a socket or a process, and anything that
knows the name of a cloud.
"""
