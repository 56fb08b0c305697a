"""What scikit-build-core asks for a wheel's version, which posenc's header has, and the torch that it needs: the minor version of the one that
it is built with."""

import re
from importlib.metadata import version
from pathlib import Path

HEADER = Path(__file__).resolve().parents[2] / "include/posenc/version.h"


def dynamic_metadata(settings, project):
    major, minor = version("torch").split(".")[:2]
    return {"version": re.search(r'POSENC_VERSION "(.*)"', HEADER.read_text())[1], "dependencies": [f"torch=={major}.{minor}.*"]}
