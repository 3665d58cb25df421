"""Rules of the repository: what is documented, what imports what, how long files are."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from agent.settings import Settings
from tools.registry import toolkit

ROOT = Path(__file__).parents[1]
PRODUCT = ("app.py", "agent", "alerts", "pages", "store", "tools")
MAX_LINES = 320
"""About 300: a file is read in one sitting."""
STUBS = {"Mock", "MagicMock", "AsyncMock", "patch", "setattr", "setitem"}
"""Names that replace our own code in a test. What is faked here is faked at the wire."""


@cache
def tracked(*suffixes: str) -> tuple[Path, ...]:
    """The repository's files, those that git would take among them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return tuple(ROOT / name for name in sorted(listed) if name.endswith(suffixes) and (ROOT / name).is_file())


def product() -> tuple[Path, ...]:
    return tuple(path for path in tracked(".py") if path.relative_to(ROOT).parts[0] in PRODUCT)


def suite() -> tuple[Path, ...]:
    return tuple(path for path in tracked(".py") if path.relative_to(ROOT).parts[0] == "tests")


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def places(paths: tuple[Path, ...], wanted: type[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    for path in paths:
        for node in nodes(path):
            if isinstance(node, wanted):
                yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}", node


def imports(paths: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    """Where a module is imported, and its name."""
    for place, node in places(paths, ast.Import):
        yield from ((place, alias.name) for alias in node.names)  # pyright: ignore
    for place, node in places(paths, ast.ImportFrom):
        yield from ((place, f"{node.module}.{alias.name}") for alias in node.names)  # pyright: ignore


def requirements(name: str) -> list[Requirement]:
    lines = (line.split(" #")[0].strip() for line in text_of(name).splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith(("#", "-r"))]


def test_every_setting_stands_in_the_example_and_in_the_readme() -> None:
    names = [name.upper() for name in Settings.model_fields]
    for document in (".env.example", "README.md"):
        text = text_of(document)
        assert [name for name in names if not re.search(rf"\b{name}\b", text)] == [], document


def test_the_example_sets_nothing_that_is_no_setting() -> None:
    written = re.findall(r"^#?\s*([A-Z][A-Z_]+)=", text_of(".env.example"), re.MULTILINE)
    assert written
    assert set(written) - {name.upper() for name in Settings.model_fields} - {"PORT"} == set()


def test_every_tool_stands_in_the_readme() -> None:
    names = list(toolkit(outbox=None).tools)  # pyright: ignore[reportArgumentType]
    assert len(names) >= 2
    assert [name for name in names if name not in text_of("README.md")] == []


def test_the_changelog_says_what_comes_next() -> None:
    assert "## [Unreleased]" in text_of("CHANGELOG.md")


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_requirements_are_bounded_above(name: str) -> None:
    found = requirements(name)
    assert found
    assert [str(one) for one in found if not any(bound.operator in ("<", "==", "~=") for bound in one.specifier)] == []


def test_the_readme_says_why_each_requirement_is_there() -> None:
    readme = text_of("README.md").lower()
    assert [one.name for one in requirements("requirements.txt") if one.name.lower() not in readme] == []


def test_no_file_is_longer_than_a_person_reads() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in tracked(".py", ".js", ".css")}
    assert len(lengths) > 30
    assert {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > MAX_LINES} == {}


def test_the_environment_is_read_in_one_file() -> None:
    reads = [place for place, name in imports(product()) if name in ("os.environ", "os.getenv")]
    reads += [p for p, node in places(product(), ast.Attribute) if ast.unparse(node) in ("os.environ", "os.getenv")]
    assert reads, "the search finds nothing at all"
    assert {place.split(":")[0] for place in reads} == {"agent/settings.py"}


def test_nobody_imports_the_composition_root() -> None:
    assert [place for place, name in imports(product()) if name.split(".")[0] == "app"] == []


def test_openai_is_imported_by_the_model_alone() -> None:
    """Beside the import contracts, which do not read app.py."""
    users = {place.split(":")[0] for place, name in imports(product()) if name.split(".")[0] == "openai"}
    assert users == {"agent/model.py"}


def test_no_module_works_at_import() -> None:
    """At the top level of a module stand definitions; a bare call there would run with the import."""
    working = [
        f"{path.relative_to(ROOT)}:{statement.lineno}"
        for path in product()
        for statement in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Constant)
    ]
    assert working == []


def test_the_product_prints_nothing() -> None:
    """It logs. The Telegram helper, a command for the owner, writes to the stream that it is given."""
    assert [place for place, node in places(product(), ast.Call) if ast.unparse(node).startswith("print(")] == []


def test_no_test_replaces_our_own_code() -> None:
    assert [place for place, name in imports(suite()) if name.startswith(("unittest.mock", "mock."))] == []
    used = [place for place, node in places(suite(), ast.Attribute) if _is_a_stub(node)]
    assert used == []


def _is_a_stub(node: ast.AST) -> bool:
    owner, _, name = ast.unparse(node).rpartition(".")
    return name in STUBS and owner.split(".")[-1] in ("monkeypatch", "mock", "mocker")


def test_no_test_sleeps() -> None:
    """A test waits for what it waits for. A fake may be slow on purpose."""
    files = tuple(path for path in suite() if path.name.startswith("test_"))
    sleeping = [p for p, node in places(files, ast.Call) if re.match(r"(time|asyncio)\.sleep\([^0]", ast.unparse(node))]
    assert sleeping == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in tracked(".py")
        if path.read_text(encoding="utf-8").strip() and not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]
    assert silent == []
