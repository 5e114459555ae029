"""Commands as they are typed, in this process."""

import pytest

from frugal.service.commands.main import main


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FRUGAL_URL", "FRUGAL_KEY", "FRUGAL_DATABASE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def frugal(capsys: pytest.CaptureFixture[str]):
    """A command that must go well; gives what it prints."""

    def run(*arguments: object) -> str:
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        return out

    return run


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]):
    """A command that must be refused; gives its one line."""

    def run(*arguments: object) -> str:
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert (code, out) == (2, "")
        assert err.startswith("frugal: ")
        assert err.count("\n") == 1
        return err

    return run
