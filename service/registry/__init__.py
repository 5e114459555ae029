"""The registry: published versions, immutable and numbered per name, and a cache of the loaded ones."""
