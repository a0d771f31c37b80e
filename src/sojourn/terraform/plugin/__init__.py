"""A small server of Terraform's plugin protocol, version 6.

A resource declares its schema and its verbs (see resource.py), and this serves them. What does not
belong here: anything that knows what a resource is good for.
"""
