"""All references: importing this module fills `REFERENCES` with one entry for every preset name."""

import adapters_exp  # noqa: F401
import adapters_grid  # noqa: F401
import adapters_halves  # noqa: F401
import adapters_power  # noqa: F401
import adapters_transformers  # noqa: F401
import rederived
from registry import COPIES, REFERENCES, Reference, all_of

assert sorted(REFERENCES) == rederived.NAMES, set(REFERENCES) ^ set(rederived.NAMES)

__all__ = ["COPIES", "REFERENCES", "Reference", "all_of"]
