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

from table import FAMILIES  # noqa: E402


def section() -> str:
    """The table, with a line for each kind of type and a column for each of its forms."""
    lines = ["| type | `T` | " + " | ".join(f"`T{form}`" for form in FORMS[1:]) + " |", "|---" * (len(FORMS) + 1) + "|"]
    for family, types in FAMILIES.items():
        cells = {one.schema.removeprefix(family): ", ".join(f"`{each}`" for each in one.parameters) for one in types}
        assert cells.keys() <= set(FORMS), f"no column for {cells.keys() - set(FORMS)}"
        lines.append(f"| `{family}` | " + " | ".join(cells.get(form, "") for form in FORMS) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    new = with_section(text, BEGIN, END, section())
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(new, encoding="utf-8")
    elif new != text:
        raise SystemExit("docs/operators-guide.md has not the types that are tested; run: python tools/schema_table.py")
