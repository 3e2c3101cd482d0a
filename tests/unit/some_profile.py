"""A profile to alter, as a run makes one."""

from typing import Any

from autotune.problem.profile import Profile

PROVEN_ON = {
    "level": "raid6",
    "members": 5,
    "chunk_kib": 64,
    "media": "hdd",
    "kernel": "6.1.176",
}
DOCUMENT: dict[str, Any] = {
    "schema_version": 1,
    "name": "elsewhere",
    "created": "2026-01-01T00:00:00Z",
    "proven_on": PROVEN_ON,
    "workload": "quick",
    "knobs": {"stripe_cache_size": 1024, "scheduler": "bfq"},
    "before": {"stripe_cache_size": 256, "scheduler": "none"},
    "ram_bytes": 1,
    "ram_budget_bytes": 2,
    "evidence": {
        "gain": 1.5,
        "low": 1.4,
        "high": 1.6,
        "trials": 9,
        "seconds": 9,
        "figures": {},
    },
}


def document(knobs: dict[str, int | str] | None = None, **proven_on: object) -> dict[str, Any]:
    """The document with other knobs, or proven elsewhere."""
    changed = {**DOCUMENT, "proven_on": {**PROVEN_ON, **proven_on}}
    return {**changed, "knobs": knobs} if knobs is not None else changed


def profile(knobs: dict[str, int | str] | None = None, **proven_on: object) -> Profile:
    return Profile.model_validate(document(knobs, **proven_on))
