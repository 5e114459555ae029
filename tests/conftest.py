"""Hypothesis runs the same examples every time; `make test-slow` looks further."""

import os

import numba
import numpy as np
from hypothesis import HealthCheck, settings

if numba.config.DISABLE_JIT:
    np.seterr(over="ignore")  # random words wrap around by design; numpy warns of it, compiled code does not

settings.register_profile("quick", max_examples=200, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("long", max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
