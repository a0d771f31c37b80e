"""What runs on a machine of Azure around the agent. Standard library only, beside the agent itself.

`fetching` and `metadata` travel in the custom data, where nothing else is there yet; the rest comes
with the agent, by way of the store.
"""
