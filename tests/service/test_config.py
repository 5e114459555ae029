"""Settings: from the environment, checked, and each in the README's table."""

import re
from pathlib import Path

import pytest

from frugal.service.config import LEAST_TRAINING, PREFIX, Settings, from_environment, to_environment, unknown_variables


def test_every_setting_stands_in_the_readme_as_it_is() -> None:
    lines = dict(re.findall(r"^\| `(FRUGAL_[A-Z_]+)` \| (.*) \|$", Path("README.md").read_text(), re.MULTILINE))
    expected = {}
    for name, field in Settings.model_fields.items():
        default = "not set" if field.default is None else f"`{field.default}`"
        expected[PREFIX + name.upper()] = f"{default} | {field.description}"
    assert lines == expected


def test_every_default_can_be_typed_as_it_is_written() -> None:
    written = re.findall(r"^\| `(FRUGAL_[A-Z_]+)` \| `(.*?)` \|", Path("README.md").read_text(), re.MULTILINE)
    assert len(written) > 20
    assert from_environment(dict(written)) == Settings()


def test_the_environment_sets_and_options_win() -> None:
    settings = from_environment({"FRUGAL_PORT": "9000", "FRUGAL_WORKERS": "2", "FRUGAL_POOL": "3", "OTHER": "x"}, port=9001, host=None)
    assert (settings.port, settings.workers, settings.pool, settings.host) == (9001, 2, 3, "127.0.0.1")


def test_settings_survive_the_way_to_worker_processes() -> None:
    settings = Settings(database="postgresql://u:p@h/d", port=1, session_ttl=5, sweep_every=0.5)
    assert from_environment(to_environment(settings)) == settings


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("PORT", "x", "expected a whole number from 0 to 65535, not 'x'"),
        ("PORT", "70000", "expected a whole number from 0 to 65535, not '70000'"),
        ("PORT", "", "expected a whole number from 0 to 65535, not ''"),
        ("WORKERS", "0", "expected a whole number from 1 to 64, not '0'"),
        ("SESSION_TTL", "604,800", "expected a whole number from 1 to 315360000, not '604,800': write 604800"),
        ("MAX_UPLOAD", "16 777 216", "expected a whole number of 1024 or more, not '16 777 216': write 16777216"),
        ("MAX_BODY", "1.5", "expected a whole number of 1024 or more, not '1.5'"),
        ("MIGRATE", "maybe", "expected auto or never, not 'maybe'"),
        ("LOG_LEVEL", "loud", "expected debug, info, warning or error, not 'loud'"),
        ("DATABASE", "mysql://x", "expected sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME"),
        ("DATABASE", "sqlite:///", "a database in memory is lost with its process: name a file"),
        ("DATABASE", "sqlite:///:memory:", "a database in memory is lost with its process: name a file"),
        ("SWEEP_EVERY", "nan", "expected a number above 0 and at most 3600, not 'nan'"),
        ("POOL", "9" * 100, f"expected a whole number from 1 to 200, not '{'9' * 39}…'"),
    ],
)
def test_a_wrong_value_is_told_in_our_words_with_the_name_of_its_variable(name: str, value: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(f'FRUGAL_{name}: {words}')}$"):
        from_environment({f"FRUGAL_{name}": value})


def test_every_setting_has_words_for_a_wrong_value() -> None:
    for name, field in Settings.model_fields.items():
        if field.annotation is not str and name not in ("admin_key", "database_password_file"):
            with pytest.raises(
                ValueError, match=f"^FRUGAL_{name.upper()}: expected (a whole number|a number|[a-z, ]+ or [a-z]+)\\b.*, not '!'$"
            ):
                from_environment({f"FRUGAL_{name.upper()}": "!"})


def test_a_wrong_option_is_told_by_its_own_name() -> None:
    with pytest.raises(ValueError, match=r"^--port: expected a whole number from 0 to 65535, not '-1'$"):
        from_environment({}, port=-1)


def test_a_secret_is_not_repeated() -> None:
    for name, value in (("ADMIN_KEY", "frgl_s3cr3t"), ("DATABASE", "pgsql://u:s3cr3t@h/d")):
        with pytest.raises(ValueError, match=f"^FRUGAL_{name}: ") as told:
            from_environment({f"FRUGAL_{name}": value})
        assert "s3cr3t" not in str(told.value)


def test_a_variable_that_nothing_reads_is_known_by_the_nearest_name() -> None:
    given = {"FRUGAL_PROT": "1", "FRUGAL_MAX_OPEN_SESSION": "1", "frugal_port": "1", "FRUGAL_": "", "FRUGAL_QQQ": "1", "FRUGALITY": "1"}
    read = {"FRUGAL_URL": "x", "FRUGAL_KEY": "x"} | to_environment(Settings())
    assert unknown_variables(given | read) == {
        "FRUGAL_PROT": "FRUGAL_PORT",
        "FRUGAL_MAX_OPEN_SESSION": "FRUGAL_MAX_OPEN_SESSIONS",
        "frugal_port": "FRUGAL_PORT",
        "FRUGAL_": None,
        "FRUGAL_QQQ": None,
    }


@pytest.mark.parametrize("file", ["docker-compose.yml", "Dockerfile", "Makefile", *map(str, sorted(Path("docs").glob("*.md")))])
def test_every_variable_that_is_written_down_is_one_that_is_read(file: str) -> None:
    assert unknown_variables(dict.fromkeys(re.findall(r"\bFRUGAL_[A-Z_]+\b", Path(file).read_text()), "")) == {}


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


@pytest.mark.parametrize("size", [1, 1000, LEAST_TRAINING - 1])
def test_a_training_needs_some_memory(size: int) -> None:
    with pytest.raises(ValueError, match="expected 268435456 or more, or 0 for no limit"):
        from_environment({"FRUGAL_TRAINING_MEMORY": str(size)})


def test_those_who_watch_leave_half_of_the_connections() -> None:
    assert Settings().most_watchers == 500
    assert Settings(max_connections=100).most_watchers == 50
    assert Settings(max_watchers=3).most_watchers == 3
    assert Settings(max_connections=1).most_watchers == 1
