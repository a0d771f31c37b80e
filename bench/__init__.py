"""Benchmarks: Sojourn's storage side by side with its peers, in one run on one server.

`python -m bench` says what there is. What does not belong here: anything that tests need.
"""
