"""The command line and the first example."""

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from jaxmbd import cli

ROOT = Path(__file__).resolve().parents[1]


def python(*arguments):
    """A new interpreter that finds this package first and whose x64 flag is jax's own default."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {name: value for name, value in os.environ.items() if name != "JAX_ENABLE_X64"} | {"PYTHONPATH": path}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)


def tiny_example(monkeypatch, folder, body):
    """Make `tiny` the only example, and return its path."""
    script = folder / "tiny.py"
    script.write_text(f'"""A tiny example.\n\nMore about it."""\n{body}')
    monkeypatch.setattr(cli, "examples", lambda: {"tiny": script})
    return script


def test_list_gives_first_lines_without_running(monkeypatch, tmp_path, capsys):
    tiny_example(monkeypatch, tmp_path, "raise RuntimeError('was run')")
    assert cli.main(["list"]) == 0
    assert capsys.readouterr().out == "tiny  A tiny example.\n"


def test_list_knows_the_pendulum(capsys):
    assert cli.main(["list"]) == 0
    assert re.search(r"^pendulum +Mathematical pendulum", capsys.readouterr().out, re.MULTILINE)


def test_unknown_example_names_the_known_ones(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["run", "perpetuum-mobile"])
    assert stop.value.code == 2
    message = capsys.readouterr().err
    assert "perpetuum-mobile" in message
    assert "pendulum" in message


def test_missing_matplotlib_tells_the_remedy(monkeypatch, tmp_path, capsys):
    tiny_example(monkeypatch, tmp_path, "raise RuntimeError('was run')")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit) as stop:
        cli.main(["run", "tiny"])
    assert stop.value.code == 1
    assert 'pip install "jaxmbd[viz]"' in capsys.readouterr().err


def test_run_passes_options_and_puts_arguments_back(monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    tiny_example(monkeypatch, tmp_path, "from jaxmbd.cli import options\nprint(options().reduced, options().out)")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    before = list(sys.argv)
    assert cli.main(["run", "tiny", "--reduced", "--out", "here"]) == 0
    assert cli.main(["run", "tiny"]) == 0
    assert capsys.readouterr().out == "True here\nFalse .\n"
    assert sys.argv == before


def test_options_of_a_script_started_directly(monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr(sys, "argv", ["pendulum.py", "--reduced", "--out", "pictures"])
    assert cli.options().reduced
    assert cli.options().out == Path("pictures")
    monkeypatch.setattr(sys, "argv", ["pendulum.py", "--redcued"])
    with pytest.raises(SystemExit):
        cli.options()


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith("jaxmbd ")


def test_import_needs_no_matplotlib_and_leaves_jax_alone():
    check = "import sys, jax, jaxmbd.cli; print('matplotlib' in sys.modules, jax.config.jax_enable_x64)"
    assert python("-c", check).stdout.split() == ["False", "False"]


def test_pendulum_keeps_what_it_should_and_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    folder = tmp_path / "new" / "folder"
    done = python("-m", "jaxmbd.cli", "run", "pendulum", "--reduced", "--out", folder)
    assert done.returncode == 0, done.stderr

    table = dict(re.findall(r"^  (.+?)  +(\S+)$", done.stdout, re.MULTILINE))
    assert table.pop("circle: lambda (published: 1.00251257867)").startswith("1.002512578")
    kept = {name: float(value) for name, value in table.items()}
    assert kept.pop("gravity: amplitude of H_d") < 0.6 * kept.pop("gravity: amplitude of E_d")
    assert 0.1 < kept.pop("gravity: hidden constraint (46) for p_n, at most") < 0.2
    assert len(kept) == 8
    assert all(value < 1e-11 for value in kept.values()), kept

    picture = folder / "pendulum.png"
    assert str(picture) in done.stdout
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert min(struct.unpack(">II", content[16:24])) > 1000
    assert len(content) > 100_000
