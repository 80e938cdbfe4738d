"""Data flow one way: a module imports only from modules to its left."""

import ast
from pathlib import Path

import pytest

import jaxmbd

ROOT = Path(jaxmbd.__file__).parent
ORDER = [
    "errors",
    "compiling",
    "rows",
    "lapack",
    "rotation",
    "frame",
    "bodies",
    "joints",
    "loads",
    "groups",
    "beams",
    "finite_volume",
    "parts",
    "tree",
    "system",
    "assembly",
    "bodywise",
    "linear",
    "newton",
    "calculus",
    "discrete",
    "splitting",
    "saddle",
    "kinetics",
    "schemes",
    "formulations",
    "solving",
    "trajectory",
    "reading",
    "checks",
    "start",
    "loading",
    "statics",
    "continuation",
    "vibration",
    "floating",
    "ritz",
    "sparsity",
    "simulate",
    "placement",
    "stacking",
    "assemble",
    "rates",
    "report",
    "mechanism",
    "gallery",
    "post",
    "viz",
    "cli",
]
MODULES = sorted(path for path in ROOT.rglob("*.py") if path.name != "__init__.py" and "examples" not in path.parts)


def part(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_left(path):
    depth = len(path.relative_to(ROOT).parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == depth and node.module:
            imported = node.module.split(".")[0]
            assert ORDER.index(imported) < ORDER.index(part(path)), f"{part(path)} imports {imported}, which is to its right"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_stay_small(path):
    assert len(path.read_text().splitlines()) <= 330


def test_import_changes_no_global_setting(tmp_path):
    import subprocess
    import sys

    code = "import jax; before = dict(jax.config.values); import jaxmbd; assert dict(jax.config.values) == before"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT.parent)
