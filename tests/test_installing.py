"""One installed name: the wheel in an environment of its own, and what an import brings."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
PACKAGES = ("models/", "service/", "migrations/")
HEAVY = {"numpy", "numba", "pyarrow", "sqlalchemy", "asyncpg", "psycopg", "fastapi", "pydantic", "alembic", "uvicorn"}


def run(command: list[str], cwd: Path) -> str:
    """In an environment that leads to no checkout."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=True).stdout


def loaded(line: str) -> set[str]:
    """The packages that a fresh process has after this line."""
    said = run([sys.executable, "-c", f"{line}; import json, sys; print(json.dumps(sorted(sys.modules)))"], ROOT)
    return {name.partition(".")[0] for name in json.loads(said)}


def test_importing_frugal_brings_nothing_heavy() -> None:
    assert not loaded("import frugal; dir(frugal)") & (HEAVY | {"httpx"})


def test_importing_the_client_brings_httpx_and_nothing_heavy() -> None:
    found = loaded("from frugal.client import Client")
    assert "httpx" in found
    assert not found & HEAVY


def test_names_are_loaded_when_they_are_used() -> None:
    assert "numba" in loaded("from frugal import decide")
    with pytest.raises(AttributeError, match="'frugal' has no attribute 'nonsense'"):
        import_nonsense()


def import_nonsense() -> None:
    import frugal

    frugal.nonsense  # noqa: B018


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    for name in TRACKED:  # a build leaves files behind: not here
        if name.startswith(("frugal/", *PACKAGES)) or name in ("pyproject.toml", "README.md", "LICENSE"):
            (folder / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / "checkout" / name, follow_symlinks=False)
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
    run([sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", "..", "."], folder / "checkout")
    return next(folder.glob("frugal-*.whl"))


def test_the_wheel_holds_all_under_one_name(wheel: Path) -> None:
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    wanted = {f"frugal/{name}" for name in TRACKED if name.startswith(PACKAGES) and name.endswith(".py")}
    assert held == wanted | {"frugal/__init__.py", "frugal/client.py", "frugal/py.typed"}


def test_the_command_of_a_client_only_installation_says_what_to_install(tmp_path: Path) -> None:
    script = "import sys; sys.modules['numba'] = None; from frugal.service.commands.start import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("frugal: numba is not installed.")
    assert done.stderr.endswith("pip install '.[serve]'\n")


@pytest.mark.parametrize("command", ["serve", "migrate", "worker", "keys create --owner me"])
def test_a_command_of_the_server_in_an_installation_without_it_says_what_to_install(tmp_path: Path, command: str) -> None:
    script = "import sys; sys.modules['sqlalchemy'] = None; from frugal.service.commands.start import main; sys.exit(main())"
    arguments = [*command.split(), "--database", f"sqlite:///{tmp_path / 'a.db'}"]
    done = subprocess.run([sys.executable, "-c", script, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("frugal: sqlalchemy is not installed.")
    assert done.stderr.endswith("pip install '.[serve]'\n")


@pytest.mark.parametrize("lacking", ["numpy", "numba"])
def test_a_name_that_needs_more_than_the_client_says_what_to_install(lacking: str) -> None:
    script = f"import sys; sys.modules['{lacking}'] = None; from frugal import BudgetForestClassifier"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == ("ImportError: frugal needs numpy and numba for this: in the checkout, pip install '.[learn]'")


def test_modules_of_the_users_own_do_not_get_in_the_way(wheel: Path, tmp_path: Path) -> None:
    """A fresh environment, in a folder with a models.py and a service.py. The packages that frugal needs are lent from this one."""
    for name in ("models.py", "service.py", "migrations.py"):
        (tmp_path / name).write_text("raise RuntimeError('this is the user's own')\n".replace("user's", "user"))
    run([sys.executable, "-m", "venv", "--without-pip", "env"], tmp_path)
    python = str(tmp_path / "env" / "bin" / "python")
    run([sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", str(wheel)], tmp_path)
    packages = next((tmp_path / "env").glob("lib/*/site-packages"))
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    script = "import frugal; from frugal import CostModel, decide; from frugal.client import Client; print(frugal.__file__)"
    assert run([python, "-c", script], tmp_path).strip() == str(packages / "frugal" / "__init__.py")
    assert "Predict from as few paid facts" in run([str(tmp_path / "env" / "bin" / "frugal"), "--help"], tmp_path)
    run([str(tmp_path / "env" / "bin" / "frugal"), "migrate", "--database", f"sqlite:///{tmp_path / 'a.db'}"], tmp_path)
