"""Data flow one way: a module imports only from modules to its left."""

import ast
import importlib
import pkgutil
import sys
import types
from pathlib import Path

import pytest

import jaxmbd

ROOT = Path(jaxmbd.__file__).parent
ROOMS = [
    "errors",
    "numerics",
    "geometry",
    "friction",
    "joints",
    "loads",
    "bodies",
    "beams",
    "system",
    "constraints",
    "assembly",
    "robotics",
    "schemes",
    "formulations",
    "simulation",
    "statics",
    "reduction",
    "odes",
    "inverse",
    "post",
    "viz",
    "gallery",
    "cli",
]
MODULES = sorted(path for path in ROOT.rglob("*.py") if path.name != "__init__.py" and "examples" not in path.parts)


def room(parts):
    return parts[0].removesuffix(".py")


def imported_rooms(path):
    """The rooms that a module imports from, by whatever form of import."""
    here = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here[: len(here) - node.level + 1]
            modules = [node.module.split(".")] if node.module else [[alias.name] for alias in node.names]
            yield from (room((*base, *module)) for module in modules)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            assert not any(name.split(".")[0] == "jaxmbd" for name in names), f"{path} imports jaxmbd by its full name"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_left(path):
    own = room(path.relative_to(ROOT).parts)
    for other in imported_rooms(path):
        assert ROOMS.index(other) <= ROOMS.index(own), f"{own} imports {other}, which is to its right"


def test_rooms_are_all_there_is():
    there = {path.name.removesuffix(".py") for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert there - {"__init__", "examples"} == set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_stay_small(path):
    assert len(path.read_text().splitlines()) <= 330


def test_import_changes_no_global_setting(tmp_path):
    import subprocess
    import sys

    code = "import jax; before = dict(jax.config.values); import jaxmbd; assert dict(jax.config.values) == before"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT.parent)


PACKAGES = [jaxmbd, *(importlib.import_module(f"jaxmbd.{room}") for room in ROOMS if (ROOT / room).is_dir())]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_no_function_hides_its_module(package):
    for module in pkgutil.iter_modules(package.__path__):
        assert isinstance(getattr(package, module.name, sys), types.ModuleType), f"{package.__name__}.{module.name} is hidden by a name"


def test_few_names_at_the_top():
    names = [name for name, value in vars(jaxmbd).items() if not name.startswith("_") and not isinstance(value, types.ModuleType)]
    assert len(names) <= 50, "rare names belong to their family"
