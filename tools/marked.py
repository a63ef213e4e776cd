"""`with_section`: replaces the part of a page that a tool writes, between two marks."""


def with_section(text: str, begin: str, end: str, new: str) -> str:
    """`text` with the part between the lines `begin` and `end` replaced by `new`."""
    before, found, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise SystemExit(f"the page needs the lines {begin!r} and {end!r}")
    return f"{before}{begin}\n\n{new}\n\n{end}{after}"
