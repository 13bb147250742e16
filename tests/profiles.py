"""How long property tests search: `HYPOTHESIS_PROFILE=default|torture|fuzz`, read once by conftest."""

import os

from hypothesis import HealthCheck, settings

_SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large)


def load() -> None:
    """Register the profiles and choose one. Raises `hypothesis.errors.InvalidArgument` for an unknown name."""
    # No deadline: other processes share the machine, so a slow case is no defect of the code.
    settings.register_profile("default", max_examples=60, deadline=None, derandomize=True, database=None)
    settings.register_profile("torture", max_examples=3_000, deadline=None, suppress_health_check=_SLOW_IS_FINE)
    settings.register_profile("fuzz", max_examples=20_000, deadline=None, suppress_health_check=_SLOW_IS_FINE)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
