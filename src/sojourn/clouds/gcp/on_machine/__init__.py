"""What runs on a Compute Engine machine around the agent. Standard library only, beside the agent.

`metadata` and `fetching` travel in the startup script, where nothing else is there yet; the rest
comes with the agent, by way of the store.
"""
