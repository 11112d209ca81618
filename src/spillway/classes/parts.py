"""Shared and unshared parts of a class, shed separately (thesis section 6.1.4)."""

from spillway.errors import require


def spare_shared(
    keep_fraction: float, own_load: float, shared_load: float, least: float = 0.01
) -> tuple[float, float]:
    """(keep fraction of what only this class reads, of what lower classes read as well).

    What a class sheds in front of a shared segment is lost for the lower classes too, overloaded
    or not. So its own part is shed first, down to `least`; the kept load is the same as if all
    were shed alike:

        own x own_load + shared x shared_load = keep_fraction x (own_load + shared_load)
    """
    require(0.0 <= keep_fraction <= 1.0, "keep fraction", keep_fraction, "0 to 1")
    if own_load <= 0.0 or shared_load <= 0.0 or keep_fraction <= least:
        return keep_fraction, keep_fraction
    kept = keep_fraction * (own_load + shared_load)
    shared = min(1.0, (kept - least * own_load) / shared_load)
    return min(1.0, (kept - shared * shared_load) / own_load), shared
