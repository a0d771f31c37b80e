"""The program that runs on a machine: restores, runs the script, snapshots, logs and reports.

Standard library plus obstore only: it travels with the task. What does not belong here: anything
about how the machine was made, and anything that needs the user's credentials.
"""
