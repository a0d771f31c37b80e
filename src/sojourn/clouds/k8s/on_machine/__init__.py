"""What runs in the pods of a task: the agent's container, and a shell program in the script's.

Standard library alone, beside the agent itself. What does not belong here: calls to the API server.
"""
