"""The text that the models learn, as numbers."""

import argparse
import inspect
import os
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from interop.cli import USAGE, CommandError

MINIMUM = 2000
"""The fewest characters that a text may have."""

MAXIMUM = 1_000_000
"""How much of a longer text is read: more than a run can use."""


class Text:
    """A text as indices into its own alphabet.

    Parameters
    ----------
    name
        What results call it.
    characters
        The text itself, of at least MINIMUM characters.
    """

    def __init__(self, name: str, characters: str):
        if len(characters) < MINIMUM:
            raise CommandError(f"{name} has {len(characters)} characters; a text needs at least {MINIMUM}", USAGE)
        self.name = name
        self.alphabet = sorted(set(characters))
        number = {character: index for index, character in enumerate(self.alphabet)}
        self.indices = torch.tensor([number[character] for character in characters])

    def batches(self, batch: int, length: int, steps: int, seed: int = 0) -> Iterator[Tensor]:
        """Random places of the text, `steps` times: (length + 1, batch), each column a stretch of it."""
        generator = torch.Generator().manual_seed(seed)
        for _ in range(steps):
            starts = torch.randint(len(self.indices) - length, (1, batch), generator=generator)
            yield self.indices[starts + torch.arange(length + 1).unsqueeze(1)]


def read(path: str) -> Text:
    """The text of a file in UTF-8."""
    try:
        with open(path, encoding="utf-8") as file:
            return Text(_printable(Path(path).name), file.read(MAXIMUM))
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}", USAGE) from error
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        raise CommandError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}", USAGE) from error


def default() -> Text:
    """Python's licence; where a distribution has moved it away, the source of argparse, which this program runs on."""
    licence = Path(os.__file__).with_name("LICENSE.txt")
    if licence.is_file():
        return read(str(licence))
    try:
        return Text("argparse.py", inspect.getsource(argparse))
    except OSError as error:
        raise CommandError(
            "this Python has neither its licence nor its sources: give a text with --text FILE"
        ) from error


def _printable(name: str) -> str:
    """A file's name may hold bytes that are no text."""
    return os.fsencode(name).decode("utf-8", "replace")
