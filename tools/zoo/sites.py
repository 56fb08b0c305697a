"""Finds every sine and cosine in the models of the installed transformers, so that no table of positions is overlooked.

Each function that computes one is a rotary embedding (by its name), or compared with a preset (registry.py), or listed
in not_tables.txt with the reason why it is no table of positions. Anything else is printed; exit 1 then.
"""

import ast
import fnmatch
import re
import sys
from functools import cache
from pathlib import Path

import rederived
import sources
from adapters import all_of

NOT_TABLES = Path(__file__).resolve().parent / "not_tables.txt"
FUNCTIONS = {"sin", "cos", "sin_", "cos_", "polar"}
SKIPPED = ("convert_", "modular_", "configuration_", "tokenization_")  # modular_ files are what modeling_ is made from


def not_tables() -> list[tuple[str, str]]:
    """(pattern of model.Class.method, reason)."""
    lines = [line for line in NOT_TABLES.read_text().splitlines() if line and not line.startswith("#")]
    return [tuple(re.split(r"  +", line, maxsplit=1)) for line in lines]


def _computes(node: ast.AST) -> bool:
    """x.sin(), or torch.sin and np.sin even when they are only passed on."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in FUNCTIONS
    return (
        isinstance(node, ast.Attribute)
        and node.attr in FUNCTIONS
        and isinstance(node.value, ast.Name)
        and node.value.id in ("torch", "np", "math")
    )


def sites_of(file: Path) -> dict[str, set[str]]:
    """Qualified name -> the outermost definition, and those that use it if it is a function."""
    tree = ast.parse(file.read_text())
    found = []

    def visit(node, path):
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, (ast.FunctionDef, ast.ClassDef))
            if _computes(child):
                found.append(path)
            visit(child, [*path, child.name] if named else path)

    visit(tree, [])
    users: dict[str, set[str]] = {}
    for top in tree.body:
        if isinstance(top, (ast.FunctionDef, ast.ClassDef)):
            for node in ast.walk(top):
                if isinstance(node, ast.Name):
                    users.setdefault(node.id, set()).add(top.name)
    functions = {top.name for top in tree.body if isinstance(top, ast.FunctionDef)}
    return {
        ".".join(path): {path[0], *(users.get(path[0], set()) if path[0] in functions else set())}
        for path in found
        if path
    }


@cache
def _compared() -> list[str]:
    return [r.system for name in rederived.NAMES for r in all_of(name) if r.package == "transformers"]


def _is_compared(model: str, name: str) -> bool:
    def folded(text):
        return text.lower().replace("_", "").replace(" ", "")

    def here(system):
        if name not in re.findall(r"\w+", system):
            return False
        if ": " in system:
            return system.split(": ")[0] == model
        return name[0].isupper() or folded(model) in folded(system)

    return any(here(system) for system in _compared())


def unaccounted() -> list[str]:
    models = Path(sources.installed("transformers").__file__).parent / "models"
    patterns = not_tables()
    unused = {pattern for pattern, _ in patterns}
    found = []
    for file in sorted(models.glob("*/*.py")):
        if file.name.startswith(SKIPPED):
            continue
        model = file.parent.name
        for site, users in sites_of(file).items():
            hits = {pattern for pattern, _ in patterns if fnmatch.fnmatchcase(f"{model}.{site}", pattern)}
            unused -= hits
            rotary = re.search(r"rotary|rope|rotate", site.lower())
            if not (hits or rotary or any(_is_compared(model, user) for user in users)):
                found.append(f"{model}.{site}: neither compared with a preset nor in not_tables.txt")
    return found + [f"{pattern}: in not_tables.txt, but not in transformers" for pattern in sorted(unused)]


if __name__ == "__main__":
    problems = unaccounted()
    print("\n".join(problems) or "every sine and cosine is accounted for")
    sys.exit(1 if problems else 0)
