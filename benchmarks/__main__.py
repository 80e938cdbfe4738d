"""`python -m benchmarks NAME [--out DIR]`."""

import argparse
import importlib
from pathlib import Path

import jax

from .measure import print_table, write_json

NAMES = ("compilation", "coordinates", "gradient", "odes", "scaling", "schemes", "swing", "verification")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure ratios side by side in one run.")
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    module = importlib.import_module(f"benchmarks.{arguments.name}")
    rows = module.run()
    print_table(rows)
    print(f"written: {write_json(arguments.name, rows, arguments.out)}")
    if hasattr(module, "pictures"):
        print("written:", *module.pictures(arguments.out))


if __name__ == "__main__":
    main()
