#!/bin/sh
# What the image iterative-cml of the old provider had, on Ubuntu 24.04: the NVIDIA driver, Docker
# and the NVIDIA Container Toolkit.
#
#   sojourn image make cml --cloud aws --machine m+t4 --disk-size 40 --script examples/cml-image.sh
set -eu
export DEBIAN_FRONTEND=noninteractive
driver=${DRIVER:-535-server}
keyring=/usr/share/keyrings/nvidia-container-toolkit.gpg
packages=https://nvidia.github.io/libnvidia-container

apt-get update
apt-get install -y build-essential ca-certificates curl docker.io git gpg "linux-headers-$(uname -r)"
apt-get install -y "nvidia-headless-$driver" "nvidia-utils-$driver"

curl -fsSL "$packages/gpgkey" | gpg --dearmor --yes -o "$keyring"
curl -fsSL "$packages/stable/deb/nvidia-container-toolkit.list" |
    sed "s|deb https://|deb [signed-by=$keyring] https://|" \
        >/etc/apt/sources.list.d/nvidia-container-toolkit.list
apt-get update
apt-get install -y nvidia-container-toolkit
nvidia-ctk runtime configure --runtime=docker
systemctl enable docker
apt-get clean
