"""The command `jaxmbd`: list the examples and run them; and what the examples themselves need of a command line."""

import argparse
import ast
import importlib.metadata
import importlib.util
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

NO_MATPLOTLIB = 'the examples draw with matplotlib, which is not installed: pip install "jaxmbd[viz]"'


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = _parser()
    given = parser.parse_args(argv)
    known = examples()
    if not known:
        parser.exit(1, f"{parser.prog}: no examples were found beside or inside the package in {Path(__file__).parent}\n")
    if given.command == "list":
        _list(known)
        return 0
    if given.name not in known:
        parser.error(f"there is no example {given.name!r}; known examples: {', '.join(known)}")
    if importlib.util.find_spec("matplotlib") is None:
        parser.exit(1, f"{parser.prog}: {NO_MATPLOTLIB}\n")
    _run(known[given.name], given)
    return 0


def examples() -> dict[str, Path]:
    """Scripts by name, from the folder inside the installed package, or else beside it in a clone."""
    package = Path(__file__).resolve().parent
    # Inside comes first: beside an installed package lie the files of other packages.
    for folder in (package / "examples", package.parent / "examples"):
        if folder.is_dir():
            return {path.stem: path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")}
    return {}


def options() -> argparse.Namespace:
    """`reduced` and `out` of the script that runs, whether it was started directly or by `jaxmbd run`."""
    parser = argparse.ArgumentParser()
    _add_options(parser)
    # In a notebook, the arguments are those of its kernel.
    return parser.parse_args([] if "ipykernel" in sys.modules else None)


def present(name: str, conserved: dict[str, float | str], figure: Any) -> Path:
    """Print what was conserved as a table, write the figure as `name.png` into the folder `--out`, and say where."""
    texts = {label: value if isinstance(value, str) else f"{float(value):.3g}" for label, value in conserved.items()}
    width = max(map(len, texts), default=0)
    print(name)
    for label, text in texts.items():
        print(f"  {label:<{width}}  {text}")
    folder = options().out
    folder.mkdir(parents=True, exist_ok=True)
    picture = (folder / f"{name}.png").resolve()
    figure.savefig(picture, dpi=150)
    print(f"picture: {picture}")
    return picture


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jaxmbd", description="Differentiable multibody dynamics on JAX: run the examples.")
    parser.add_argument("--version", action="version", version=f"jaxmbd {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("list", help="list the examples")
    run = commands.add_parser("run", help="run an example: print what it conserves and draw it")
    run.add_argument("name", metavar="NAME", help="an example, as in `jaxmbd list`")
    _add_options(run)
    return parser


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reduced", action="store_true", help="a shorter motion")
    parser.add_argument("--out", type=Path, default=Path("."), metavar="DIR", help="folder of the picture (default: current folder)")


def _list(known: dict[str, Path]) -> None:
    width = max(map(len, known))
    for name, path in known.items():
        # Read, not run: listing must stay quick and free of side effects.
        about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        print(f"{name:<{width}}  {about.partition(chr(10))[0]}".rstrip())


def _run(path: Path, given: argparse.Namespace) -> None:
    """Run a script as if it had been started directly with the same options."""
    os.environ.setdefault("MPLBACKEND", "Agg")  # only a file is written; no window is wanted
    before = sys.argv
    sys.argv = [str(path), "--out", str(given.out), *(["--reduced"] if given.reduced else [])]
    try:
        runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.argv = before


def _version() -> str:
    try:
        return importlib.metadata.version("jaxmbd")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
