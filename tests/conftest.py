"""What holds for every test: examples are the same in every run, and none is too slow."""

from hypothesis import HealthCheck, settings

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile("gametape", deadline=None, derandomize=True, suppress_health_check=SLOW)
settings.load_profile("gametape")
