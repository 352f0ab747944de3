"""Settings that every test runs under: how many examples hypothesis tries.

The environment variable HYPOTHESIS_PROFILE chooses: `ci` (the default) suits every push and tries the same examples
until a test changes; `nightly` tries ten times as many, and others each time. No example has a deadline: the machines
that run these tests are shared, and speed is measured in benchmarks/.
"""

import os

from hypothesis import HealthCheck, settings

EXAMPLES = 100

settings.register_profile(
    "ci",
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("nightly", parent=settings.get_profile("ci"), max_examples=10 * EXAMPLES, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
