"""OpenSSH's client: its configuration for one machine, and its processes.

What does not belong here: how machines are made and found.
"""
