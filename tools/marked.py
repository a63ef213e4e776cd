"""`with_section`: pages of which a tool writes a part, between two marks."""


def with_section(text: str, begin: str, end: str, new: str) -> str:
    """`text` with what is between the lines `begin` and `end` replaced by `new`."""
    before, found, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise SystemExit(f"the page needs the lines {begin!r} and {end!r}")
    return f"{before}{begin}\n\n{new}\n\n{end}{after}"
