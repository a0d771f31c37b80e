"""What clouds have in common that run commands on machines: processes here that stand for those.

It knows none of the clouds.
"""
