"""The command line and, to come, the server: sessions, training, registry and store."""
