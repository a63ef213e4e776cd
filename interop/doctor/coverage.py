"""How much of ATen is declared."""

from collections import Counter

__all__ = ["coverage"]


def coverage() -> str:
    """How many entries of torch's list of operators are declared, and why the others are not."""
    # Imported here, because torchgen reads a megabyte of YAML, and other commands should not wait for it.
    from interop.codegen.overloads import overloads
    from interop.codegen.surface import read

    surface = read()
    listed = [*overloads(surface.functions, method=False), *overloads(surface.methods, method=True)]
    declared = {candidate.declaration.schema for overload in listed for candidate in overload.candidates}
    declared = (declared | surface.by_hand) - surface.left_out.keys()
    reasons = Counter(surface.left_out.values())
    total = len(declared) + len(surface.left_out)
    lines = [
        f"ATen: {surface.schemas} operators in the schema, {len(declared)} declared "
        f"({len(surface.by_hand)} of them by hand), {len(surface.left_out)} left out",
        *(f"  {count:4} {reason}" for reason, count in reasons.most_common()),
    ]
    if total != surface.schemas:
        lines.append(f"  {surface.schemas - total:4} without a public C++ function or method")
    return "\n".join(lines)
