"""The life cycle of a task on any cloud: order, retry, deadlines, failure without leaks.

What does not belong here: the name of a cloud, and words for people beyond events and errors.
"""
