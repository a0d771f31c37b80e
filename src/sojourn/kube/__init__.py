"""A client of the Kubernetes API: kubeconfig, login, objects, commands and ports of pods.

What does not belong here: what a task is, and what is made of objects.
"""
