"""The commands that talk to a server; connecting has what they share."""
