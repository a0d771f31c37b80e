"""The command line: the only part, beside other front ends, that prints and exits.

What does not belong here: anything that the Python API should be able to do as well.
"""
