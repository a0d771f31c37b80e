"""What runs on an EC2 machine around the agent. Standard library only, beside the agent itself.

`boot`, `metadata` and `signing` travel in the user-data, where nothing else is there yet; `life`
comes with the agent, by way of the store.
"""
