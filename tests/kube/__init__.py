"""A real Kubernetes of two nodes on this computer, for tests. What Sojourn does on it is elsewhere.

    python -m tests.kube build    # once; takes ten minutes and more
    python -m tests.kube up
    python -m tests.kube down

Each node is a process tree in namespaces of its own: with its init, all of the node is gone.
"""
