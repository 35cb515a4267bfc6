"""What all tests share. The scenario collector and its fixtures come with the installed plug-in `harness.plugin`.

`make check` asks for the profile `work` by `--hypothesis-profile`; all else, CI too, has the full one.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine is slow, not wrong: time is never a reason to fail a property.
settings.register_profile("onceproof", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("work", settings.get_profile("onceproof"), max_examples=10)
settings.load_profile("onceproof")
