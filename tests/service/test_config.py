"""Settings: from the environment, checked, and each in the README's table."""

import re
from pathlib import Path

import pytest

from service.config import PREFIX, Settings, from_environment, to_environment


def test_every_setting_stands_in_the_readme_as_it_is() -> None:
    lines = dict(re.findall(r"^\| `(FRUGAL_[A-Z_]+)` \| (.*) \|$", Path("README.md").read_text(), re.MULTILINE))
    expected = {}
    for name, field in Settings.model_fields.items():
        default = f"{field.default:,}" if isinstance(field.default, int) and name not in ("port",) else str(field.default)
        expected[PREFIX + name.upper()] = f"`{default}` | {field.description}"
    assert lines == expected


def test_the_environment_sets_and_options_win() -> None:
    settings = from_environment({"FRUGAL_PORT": "9000", "FRUGAL_WORKERS": "2", "FRUGAL_POOL": "3", "OTHER": "x"}, port=9001, host=None)
    assert (settings.port, settings.workers, settings.pool, settings.host) == (9001, 2, 3, "127.0.0.1")


def test_settings_survive_the_way_to_worker_processes() -> None:
    settings = Settings(database="postgresql://u:p@h/d", port=1, session_ttl=5, sweep_every=0.5)
    assert from_environment(to_environment(settings)) == settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "x"),
        ("PORT", "70000"),
        ("WORKERS", "0"),
        ("MIGRATE", "maybe"),
        ("DATABASE", "mysql://x"),
        ("DATABASE", "sqlite:///"),
        ("DATABASE", "sqlite:///:memory:"),
        ("SWEEP_EVERY", "nan"),
    ],
)
def test_a_wrong_value_is_told_with_the_name_of_its_variable(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"FRUGAL_{name}: "):
        from_environment({f"FRUGAL_{name}": value})


def test_a_wrong_option_is_told_by_its_own_name() -> None:
    with pytest.raises(ValueError, match="--port: "):
        from_environment({}, port=-1)


def test_the_password_is_not_shown() -> None:
    assert Settings(database="postgresql://u:s3cr3t@h/d").shown_database == "postgresql://u:***@h/d"
    assert Settings(database="postgresql://h/d?password=s3cr3t&sslmode=require").shown_database == "postgresql://:***@h/d?sslmode=require"
    assert Settings(database="sqlite:///var/x.db").sqlite_file == Path("var/x.db")


@pytest.mark.parametrize(
    "password", ["changeme", "change-me", "CHANGE_ME", "%3Cchangeme%3E", "password", "Password1", "secret", "postgres", "", "***"]
)
@pytest.mark.parametrize("url", ["postgresql://u:{}@db/d", "postgresql://u:{}@10.0.0.5:5432/d", "postgres://u@db/d?password={}"])
def test_a_database_that_others_reach_wants_a_password_of_its_own(url: str, password: str) -> None:
    with pytest.raises(ValueError, match=r"FRUGAL_DATABASE: the password is a placeholder: .* `make env`"):
        from_environment({"FRUGAL_DATABASE": url.format(password)})


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:changeme@127.0.0.1/d",
        "postgresql://u:changeme@localhost:5432/d",
        "postgresql://u:changeme@[::1]/d",
        "postgresql://u:changeme@/d?host=/run/postgresql",
        "postgresql://u@db/d",  # a certificate, or a file of passwords
        "postgresql://u:correct-horse@db/d",
        "postgresql://u:40961234567@db/d",
    ],
)
def test_other_passwords_are_nobodys_business(url: str) -> None:
    assert Settings(database=url).database == url
