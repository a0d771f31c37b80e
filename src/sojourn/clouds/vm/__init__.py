"""What clouds have in common whose machines boot: each starts from an image with a first script.

It knows none of the clouds. What differs, such as how a machine leaves its group, they supply.
"""
