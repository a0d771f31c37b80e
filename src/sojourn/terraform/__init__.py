"""Terraform drives Sojourn: a provider, and the resources that it offers."""
