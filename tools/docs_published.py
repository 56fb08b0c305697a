"""The table of published models in docs/encoders.md, from docs/published.json, which tools/published.py writes."""

import json

from page_tables import DOCS, table

ROWS, PAGE = DOCS / "published.json", DOCS / "encoders.md"


def rows() -> list[dict]:
    return json.loads(ROWS.read_text()) if ROWS.is_file() else []


def keep(new: list[dict]) -> None:
    """In place of the rows of the same models."""
    known = {row["model"]: row for row in rows()} | {row["model"]: row for row in new}
    ROWS.write_text(json.dumps(sorted(known.values(), key=lambda row: row["model"].lower()), indent=1) + "\n")


def agreement(row: dict, dtype: str) -> str:
    """The mean cosine, and what is the same for how many."""
    if dtype not in row:
        return ""
    return f"{row[dtype]['cosine']:.5f}" + (f"; {row[dtype]['kept']:.1%} of {row['kept']}" if row["kept"] else "")


def models() -> str:
    head = ["model", "type", "compared", "of", "float32: greatest difference", "bfloat16: mean cosine; the same", "int8: mean cosine; the same", "beside"]
    return table(head, ((row["model"], f"`{row['type']}`", row["compared"], f"{row['count']} {row['of']}", f"{row['float32']['difference']:.1e} of {row['float32']['largest']:.2g}",
                         agreement(row, "bfloat16"), agreement(row, "int8"), ", ".join(f"{name} {version}" for name, version in row["versions"].items()))
                        for row in rows()))  # fmt: skip
