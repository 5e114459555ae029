"""The first minute as it is written: what `make run` installs and says, what the README promises, what pip gets."""

import base64
import hashlib
import importlib.util
import os
import pty
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from frugal.models.curves import Point, plot

ROOT = Path(__file__).parents[1]
INSTALLER = ROOT / "deploy" / "install.py"
TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def make(*arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


def lines_of(page: str, section: str) -> str:
    return (ROOT / page).read_text().split(f"## {section}\n")[1].split("\n## ")[0]


class TestMakefile:
    def test_run_has_an_environment_of_its_own_without_the_developers_packages(self) -> None:
        said = make("--dry-run", "--always-make", "run")
        assert "deploy/install.py .venv-run" in said
        assert ".venv-run/bin/frugal serve --example" in said
        assert not re.search(r"requirements-dev|\.venv/|migrate", said)
        assert ".venv-run/" in (ROOT / ".gitignore").read_text().split()

    def test_example_trains_with_what_the_checkout_holds(self) -> None:
        assert "-m examples.heart_model" in make("--dry-run", "example")

    def test_the_installer_takes_locked_packages_only(self) -> None:
        text = INSTALLER.read_text()
        assert re.findall(r"requirements[a-z-]*\.lock", text.partition("LOCKS = ")[2].partition("\n")[0]) == [
            "requirements.lock",
            "requirements-build.lock",
        ]
        assert "--require-hashes" in text
        assert "--no-build-isolation" in text


class TestReadme:
    def test_it_counts_the_packages_that_are_installed_here(self) -> None:
        """Where all is installed there is nothing to fetch: pip only says what it has, and what is not for this machine."""
        locks = "".join((ROOT / name).read_text() for name in ("requirements.lock", "requirements-build.lock"))
        names = set(re.findall(r"^(\S+)==", re.sub(r"^\S+==.*sys_platform == .win32.*$", "", locks, flags=re.MULTILINE), re.MULTILINE))
        assert f"installs {len(names)} packages" in lines_of("README.md", "In one minute")

    def test_pip_is_told_to_take_the_checkout(self) -> None:
        lines = [line.partition("#")[0].strip() for line in lines_of("README.md", "Install").splitlines() if line.startswith("    pip")]
        assert lines == ["pip install '.[serve]'", "pip install '.[learn]'", "pip install ."]


def test_nothing_advises_a_package_of_our_name_from_an_index() -> None:
    advice = re.compile(r"(pip|pipx|uv|poetry|conda)\s+(tool\s+)?(install|add)\s+(-\S+\s+)*['\"]?frugal\b|\bfrugal\[")
    read = [
        ROOT / name
        for name in TRACKED
        if (ROOT / name).is_file() and name != "tests/test_first_minute.py" and not name.endswith((".png", ".safetensors"))
    ]
    assert len(read) > 200
    assert [str(file) for file in read if advice.search(file.read_text())] == []


# pip, as the installer uses it


def wheel(folder: Path, name: str) -> str:
    """A package that holds one module, and its line of a lock file."""
    file = folder / f"{name}-1.0-py3-none-any.whl"
    contents = {
        f"{name}.py": "here = True\n",
        f"{name}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{name}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in contents.items()]
    contents[f"{name}-1.0.dist-info/RECORD"] = "\n".join([*record, f"{name}-1.0.dist-info/RECORD,,", ""])
    with zipfile.ZipFile(file, "w") as archive:
        for path, text in contents.items():
            archive.writestr(path, text)
    return f"{name}==1.0 --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n"


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock file of two packages and one for another kind of machine; pip finds them in a folder and looks nowhere else."""
    (tmp_path / "wheels").mkdir()
    lock = tmp_path / "two.lock"
    lock.write_text(
        wheel(tmp_path / "wheels", "onepackage")
        + wheel(tmp_path / "wheels", "otherpackage")
        + "elsewhere==1.0 ; sys_platform == 'win32' --hash=sha256:"
        + "0" * 64
        + "\n"
    )
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    return lock


def installing(folder: Path, lock: Path) -> list[str]:
    """The command that installs what a lock file names, without the checkout."""
    script = f"""
import importlib.util, pathlib
spec = importlib.util.spec_from_file_location("install", {str(INSTALLER)!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.install(pathlib.Path({str(folder)!r}), [pathlib.Path({str(lock)!r})])
"""
    return [sys.executable, "-c", script]


def test_the_installer_installs_what_is_locked_and_says_how_far_it_is(packages: Path, tmp_path: Path) -> None:
    done = subprocess.run(installing(tmp_path / "env", packages), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("0:00  setting up\n")
    assert re.search(r"^\d:\d\d  \d of \d packages, (fetching|unpacking)", done.stdout, re.MULTILINE)
    assert re.search(r"\ninstalled 2 packages in \d+ s\n$", done.stdout)
    assert "\r" not in done.stdout
    subprocess.run([tmp_path / "env" / "bin" / "python", "-c", "import onepackage, otherpackage"], check=True)


def test_on_a_terminal_one_line_moves(packages: Path, tmp_path: Path) -> None:
    shown, terminal = pty.openpty()
    process = subprocess.Popen(installing(tmp_path / "env", packages), stdout=terminal, stderr=terminal)
    os.close(terminal)
    text = b""
    try:
        while part := os.read(shown, 65536):
            text += part
    except OSError:  # the other end is closed
        pass
    os.close(shown)
    assert process.wait() == 0
    drawn = re.findall(r"\r\[(#* *)\] (\d:\d\d)  (.*?) *(?=\r)", text.decode())
    assert len(drawn) > 3
    assert {len(bar) for bar, _, _ in drawn} == {24}
    assert [len(bar.rstrip()) for bar, _, _ in drawn] == sorted(len(bar.rstrip()) for bar, _, _ in drawn)
    assert len({clock for _, clock, _ in drawn}) > 1
    assert text.decode().count("\n") == 1


def test_a_package_with_another_content_is_refused_in_pips_words(packages: Path, tmp_path: Path) -> None:
    packages.write_text(re.sub("[0-9a-f]{64}", "0" * 64, packages.read_text()))
    done = subprocess.run(installing(tmp_path / "env", packages), capture_output=True, text=True)
    assert done.returncode == 1
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr
    assert done.stderr.endswith("The installation failed: see above. Run the same command again to go on.\n")
    assert "Traceback" not in done.stderr


def test_what_pip_says_is_understood() -> None:
    spec = importlib.util.spec_from_file_location("install", INSTALLER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for line, name in (
        ("Collecting psycopg-binary==3.3.8 (from -r /a/b/requirements.lock (line 610))", "psycopg-binary"),
        ("Processing /wheels/typing_extensions-4.16.0-py3-none-any.whl (from -r /a/b/requirements.lock (line 948))", "typing_extensions"),
        ("Requirement already satisfied: numpy==2.4.6 in /a/lib/python3.11/site-packages (from -r r (line 1))", "numpy"),
    ):
        progress = module.Progress(Path("nowhere"))
        progress.hear(line)
        progress.hear("  Downloading x-1-py3-none-any.whl (5.3 MB)")
        assert (progress.fetched, progress.doing) == (1, f"fetching {name} (5.3 MB)")


def test_a_python_that_is_too_old_is_told_so() -> None:
    script = "import sys, runpy; sys.version_info = (3, 10, 0); runpy.run_path(sys.argv[1], run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", script, INSTALLER], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "frugal needs Python 3.11 or later: make run PYTHON=python3.12\n")


def test_a_plot_without_matplotlib_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ValueError, match=r"^plots need matplotlib: \S*python\S* -m pip install matplotlib$"):
        plot({"a": [Point(0.1, 2.0, 3.0, 4)]}, tmp_path / "curve.png")
