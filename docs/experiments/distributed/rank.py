"""One process of the training, as torchrun starts it: ``python rank.py FOLDER SETTINGS``."""

import sys

from experiments import load

if __name__ == "__main__":
    load("distributed", "worker").main(*sys.argv[1:])
