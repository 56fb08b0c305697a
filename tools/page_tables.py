"""Tables that scripts write into pages of docs/, between `<!-- NAME: tools/SCRIPT -->` and `<!-- end of NAME -->`."""

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"


def arguments(reads_posenc: bool) -> argparse.Namespace:
    """The script's options: --write or --check, and --posenc if it runs the program."""
    script = sys.modules["__main__"]
    parser = argparse.ArgumentParser(description=script.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    if reads_posenc:
        parser.add_argument("--posenc", required=True)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    return parser.parse_args()


def filled(text: str, tables: dict[str, Callable[[], str]], script: str) -> str:
    """The text of a page with these tables in their places."""
    for name, table in tables.items():
        begin, end = f"<!-- {name}: tools/{script} -->\n", f"<!-- end of {name} -->\n"
        text, found = re.subn(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: begin + table() + end, text, flags=re.S)
        if found != 1:
            sys.exit(f"there must be one place for the table `{name}`, between {begin}and {end}")
    return text


def update(page: str, tables: dict[str, Callable[[], str]], options: argparse.Namespace) -> int:
    """Writes the tables into docs/PAGE, or returns 1 where the page has others."""
    path = DOCS / page
    text = path.read_text()
    wanted = filled(text, tables, Path(sys.argv[0]).name)
    if options.write:
        path.write_text(wanted)
    elif wanted != text:
        print(f"{path}: out of date; {' '.join(sys.argv).replace('--check', '--write')}")
        return 1
    return 0
