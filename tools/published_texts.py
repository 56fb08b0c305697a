"""Real text: the pages and the notebooks of this repository, or a file of the user's own; and real images, those of the pages."""

import json
import re
from pathlib import Path

from page_tables import DOCS, ROOT

FEWEST_WORDS = 4


def paragraphs() -> list[str]:
    """Prose, without code, tables and comments."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
    texts = [page.read_text() for page in pages]
    for notebook in sorted(ROOT.glob("notebooks_ref/*.ipynb")):
        texts += ["".join(cell["source"]) for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "markdown"]
    found = []
    for text in texts:
        text = re.sub(r"^```.*?^```$|<!--.*?-->", "\n\n", text, flags=re.M | re.S)
        text = re.sub(r"^ *(?:\||#|    ).*$", "\n", text, flags=re.M)
        found += [" ".join(re.sub(r"^ *(?:[-*]|\d+\.) ", "", block).split()) for block in re.split(r"\n\s*\n|\n(?= *[-*] )", text)]
    return [one for one in found if one]


def of_repository() -> list[str]:
    """Sentences, and whole paragraphs of several, which are longer."""
    texts = []
    for paragraph in paragraphs():
        sentences = re.split(r"(?<=[.:?!]) (?=[A-Z`*\[])", paragraph)
        texts += sentences + ([paragraph] if len(sentences) > 1 else [])
    return texts


def real_texts(count: int, file: Path | None = None) -> list[str]:
    """At most `count`, evenly from all of them."""
    texts = [" ".join(line.split()) for line in file.read_text().splitlines()] if file else of_repository()
    texts = list(dict.fromkeys(text for text in texts if len(text.split()) >= (1 if file else FEWEST_WORDS)))
    most = min(count, len(texts))
    return [texts[i * len(texts) // most] for i in range(most)]


def real_images() -> list[Path]:
    return sorted(DOCS.glob("images/*.png"))
