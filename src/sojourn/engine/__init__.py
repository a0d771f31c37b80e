"""The lifecycle of a task on any cloud: order, retry, parallelism, deadlines.

What does not belong here: anything that knows the name of a cloud, or prints.
"""
