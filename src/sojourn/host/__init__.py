"""Tasks on a computer that is there anyway: a supervisor, and agents with folders of their own.

What does not belong here: how commands get to that computer.
"""
