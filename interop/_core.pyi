from typing import TypedDict

class _BuildInfo(TypedDict):
    torch: str
    compiler: str
    cxx_standard: int

def build_info() -> _BuildInfo: ...
