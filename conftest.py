"""What all tests share. The scenario collector and its fixtures come with the installed plug-in `harness.plugin`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine is slow, not wrong: time is never a reason to fail a property.
settings.register_profile("onceproof", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("onceproof")
