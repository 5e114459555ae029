"""The HTTP shell: parse, call, shape; no SQL, no numpy."""
