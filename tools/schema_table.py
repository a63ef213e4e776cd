"""``python tools/schema_table.py``: write the table in docs/operators-guide.md of the types that a schema can have.

The types come from tests/projects/schema_types/table.py, which tests/operators/test_schema_types.py tests.
"""

import sys
from pathlib import Path

from marked import with_section

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "operators-guide.md"
BEGIN = "<!-- types: written by `python tools/schema_table.py` -->"
END = "<!-- end of types -->"
FORMS = ("", "?", "[]", "[]?", "?[]", "?[]?")

sys.path.insert(0, str(ROOT / "tests" / "projects" / "schema_types"))

from table import FAMILIES, REASONS, TYPES  # noqa: E402


def section() -> str:
    """The table, with a line for each kind of type and a column for each of its forms, and what torch cannot check."""
    lines = ["| type | `T` | " + " | ".join(f"`T{form}`" for form in FORMS[1:]) + " |", "|---" * (len(FORMS) + 1) + "|"]
    for family, types in FAMILIES.items():
        cells = {form: [] for form in FORMS}
        for one in types:  # a list of fixed length is declared like a list
            form = one.schema.removeprefix(family)
            cell = cells[form.replace("[2]", "[]")]
            new = [f"`{each}`" for each in one.parameters if f"`{each}`" not in cell]
            cell += [f"{each} for `{one.schema}`" for each in new] if "[2]" in form and cell else new
        lines.append(f"| `{family}` | " + " | ".join(", ".join(cells[form]) for form in FORMS) + " |")
    lines += [
        "",
        "`torch.library.opcheck` fails for these types, also if the operator is written in Python. "
        "torch up to 2.11 accepts some:",
        "",
    ]
    for test, reason in REASONS.items():
        types = ", ".join(f"`{one.schema}`" for one in TYPES if one.fails == test)
        lines.append(f"- {types}: `{test}` says `{reason}`")
    return "\n".join(lines)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    new = with_section(text, BEGIN, END, section())
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(new, encoding="utf-8")
    elif new != text:
        raise SystemExit("docs/operators-guide.md has not the types that are tested; run: python tools/schema_table.py")
