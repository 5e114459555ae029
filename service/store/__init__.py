"""State: the tables, the database, and plain functions per noun that take a connection."""
