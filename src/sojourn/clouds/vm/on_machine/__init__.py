"""What runs on a machine that boots, on any cloud. It travels with the agent.

Nothing here may import what is not in the agent's zip.
"""
