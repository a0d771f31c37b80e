"""What clouds have in common whose machines boot: each starts from an image with a first script.

It knows none of the clouds. What differs, such as how a machine leaves its group, they supply.
"""

from __future__ import annotations

__all__ = ["OPTIONS"]

# What users can choose of machines beyond a task's common fields. It is here as each cloud tells of
# it, also on its machines, which have no more of this folder than they need.
OPTIONS = (
    (
        "network",
        "network of the machines, as the cloud's page has it; with `,private`, without public "
        "addresses (default: the cloud's)",
    ),
    (
        "ssh_from",
        "networks that may connect to port 22, such as 203.0.113.0/24, separated by commas, or "
        "none (default: anywhere)",
    ),
    (
        "ssh_key",
        "public key that also opens machines by SSH, such as `ssh-ed25519 AAAA...`",
    ),
    (
        "vm_image",
        "machine image below a container image, `docker://NAME` (default: `nvidia` for machines "
        "with GPUs, else `ubuntu`)",
    ),
)
