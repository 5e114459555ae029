"""Owners: whose keys and sessions. Keys are made, listed and revoked here, and looked up for every request."""
