#!/usr/bin/env python3
"""golden.safetensors of docs/parity.md, by the page's own lines: tests/docs/make_golden.py FOLDER"""

import os
import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent.parent / "docs/parity.md"
Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
os.chdir(sys.argv[1])
exec("\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), flags=re.S | re.M)))
