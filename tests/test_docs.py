"""Every Python block of the README and of the pages in `docs/` runs, those of a page one after the other, as a reader would run them."""

import re
import textwrap
import traceback
from pathlib import Path

import jax
import jaxtyping
import matplotlib.pyplot as plt
import pytest

import jaxmbd

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LANGUAGES = {"python", "bash", "text"}
LONG = {"beams", "extending", "forces", "mechanisms", "odes"}
"""Pages that take longest run with the slow tests."""
FENCE = re.compile(r"^([ \t]*)```(\w+)[^\n]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """The blocks of a page in one language, each with the number of lines above it."""
    text = page.read_text()
    found = [match for match in FENCE.finditer(text) if match[2] == language]
    return [(text[: match.start(3)].count("\n"), textwrap.dedent(match[3])) for match in found]


@pytest.fixture
def as_a_reader(tmp_path, monkeypatch):
    """A folder of one's own, the settings with which JAX comes, and no checks at run time; all as before afterwards."""
    plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    settings = {"jax_enable_x64": False, "jax_numpy_dtype_promotion": "standard"}
    before = {name: getattr(jax.config, name) for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
    for name, value in before.items():
        jax.config.update(name, value)
    plt.close("all")


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.stem in LONG else ()) for page in PAGES if blocks(page, "python")],
    ids=lambda page: page.stem,
)
def test_page(page, as_a_reader):
    """What fails is named with its page and the line in it."""
    namespace = {"__name__": "__main__"}
    for lines_above, source in blocks(page, "python"):
        try:
            exec(compile("\n" * lines_above + source, str(page), "exec", dont_inherit=True), namespace)
        except Exception as error:
            line = [entry.lineno for entry in traceback.extract_tb(error.__traceback__) if entry.filename == str(page)]
            place = f"{page.relative_to(ROOT)}:{line[-1] if line else lines_above + 1}"
            raise AssertionError(f"{place}: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_say_what_they_are(page):
    """A block without a language, or with another name for Python, would be left out without notice."""
    fences = re.findall(r"^[ \t]*```(.*)$", page.read_text(), re.MULTILINE)
    assert len(fences) % 2 == 0
    assert {fence.split()[0] if fence.split() else "" for fence in fences[::2]} <= LANGUAGES


def test_every_code_has_its_cause_and_remedy():
    page = (ROOT / "docs" / "troubles.md").read_text()
    for result in jaxmbd.Result:
        assert f"| `{result.name}` |" in page, f"{result.name} is missing in the page of troubles"
