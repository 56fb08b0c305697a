"""All references: importing this module fills `REFERENCES` with one entry for every preset name."""

import adapters_exp  # noqa: F401
import adapters_grid  # noqa: F401
import adapters_halves  # noqa: F401
import adapters_power  # noqa: F401
import rederived
from registry import REFERENCES, Reference

assert sorted(REFERENCES) == rederived.NAMES, set(REFERENCES) ^ set(rederived.NAMES)

__all__ = ["REFERENCES", "Reference"]
