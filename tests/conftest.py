"""Hypothesis runs the same examples every time; `make test-slow` looks further."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("quick", max_examples=200, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("long", max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
