"""A PostgreSQL address: read in one way or refused, and its password shown nowhere."""

import asyncio
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from asyncpg.connect_utils import _parse_connect_dsn_and_args
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from sqlalchemy import make_url, text
from sqlalchemy.dialects import postgresql

from frugal.service.address import Address, read_password, without_secrets
from frugal.service.commands import main as cli
from frugal.service.config import Settings, from_environment, to_environment
from frugal.service.connections.listening import bind
from frugal.service.errors import DatabaseAway
from frugal.service.sessions.opening import open_ledger
from frugal.service.store.db import open_database
from tests.databases import PostgresServer
from tests.examples import clinic
from tests.journeys.processes import frugal
from tests.service.conftest import publish
from tests.serving import serving

NAMED = ("host", "port", "user", "password", "passfile", "database", "ssl", "service", "servicefile", "direct_tls", "server_settings")
NAMED += ("target_session_attrs", "krbsrvname", "gsslib")
WIDE = "\uff0f"  # looks like / and is another letter
ODD = "Zq7/Xw9#Kv3?Jm5@Hy8:Gt2%Fr6[Dp4] é+&=Bn1"
PIECES = re.findall(r"[A-Z][a-z]\d", ODD)  # nothing of these may be printed
HALVES = [ODD.replace("é", "e")[:n] for n in (4, 8, 12, 16, 20, 24, 28)]
MISREAD = [
    "postgresql://u:{}@127.0.0.1:1/d",
    "postgresql://u:{}@127.0.0.1:1/d?sslmode=disable",
    "postgresql://u:12/{}@127.0.0.1:1/d",
    "postgresql://127.0.0.1:1/d?password={}",
]


@pytest.fixture(autouse=True)
def _no_host_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)


def as_asyncpg_reads(url: str) -> tuple[Any, ...]:
    unset = dict.fromkeys(NAMED)
    addresses, params, *_ = _parse_connect_dsn_and_args(dsn=url, **unset)
    hosts = tuple(one[0] if isinstance(one, tuple) else one.rpartition("/")[0] for one in addresses)
    return hosts, params.user, params.password, params.database


def as_sqlalchemy_reads(url: str) -> tuple[Any, ...]:
    _, named = postgresql.dialect().create_connect_args(make_url(url))
    user = named.get("user", "") or as_asyncpg_reads("postgresql://h/d")[1]  # whoever runs this
    return tuple(named["host"].split(",")), user, named.get("password"), named.get("dbname") or user


def as_read_here(url: str) -> tuple[Any, ...]:
    address = Address.read(url)
    user = address.user or as_asyncpg_reads("postgresql://h/d")[1]
    return address.hosts, user, address.secret(), address.name or user


SOME = st.text(f"aZ3/#?@:%[]&=+ \t,.é{WIDE}-", max_size=8)
CODED = SOME.map(lambda some: quote(some, ""))


ANY = st.one_of(SOME, CODED)
HOST = st.one_of(st.sampled_from(["h", "h1,h2", "h:5433", "[::1]", "[::1]:1", ""]), SOME)
WHO = st.one_of(st.just(""), st.builds("{}@".format, ANY), st.builds("{}:{}@".format, ANY, ANY))
NAME = st.one_of(st.just(""), st.builds("/{}".format, ANY))
QUERY = st.sampled_from(["", "?sslmode=disable", "?host=h", "?host=/tmp/x", "?x", "?user=u&password=p", "?dbname=d"])


@given(st.builds("{}://{}{}{}{}".format, st.sampled_from(["postgres", "postgresql"]), WHO, HOST, NAME, QUERY))
def test_what_is_taken_is_read_alike_by_both_drivers(url: str) -> None:
    try:
        here = as_read_here(url)
    except ValueError:
        return
    assert here == as_sqlalchemy_reads(url) == as_asyncpg_reads(url)


@given(CODED.filter(bool), CODED.filter(bool), CODED.filter(bool))
def test_what_is_percent_coded_is_always_taken(user: str, password: str, name: str) -> None:
    url = f"postgresql://{user}:{password}@example.org:5433/{name}"
    assert as_read_here(url) == as_sqlalchemy_reads(url) == as_asyncpg_reads(url)
    assert Address.read(Address.read(url).shown).shown == Address.read(url).shown


@pytest.mark.parametrize("letter", "/#?@[] \t\n%" + WIDE)
def test_a_letter_that_makes_two_readings_is_refused_with_what_to_write(letter: str) -> None:
    with pytest.raises(ValueError, match=r"FRUGAL_DATABASE: this can be read in more than one way.* / as %2F, # as %23") as caught:
        from_environment({"FRUGAL_DATABASE": f"postgresql://u:Zq7{letter}Xw9@h/d"})
    assert "Zq7" not in str(caught.value)
    assert "Xw9" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://u:p@/d", "host is missing"),
        ("postgresql://u:p@h/d?host=i", "host is given twice"),
        ("postgresql://u:p@h/d?password=q", "password is given twice"),
        ("postgresql://h/d?password=Zq7&password=Xw9", "password is given twice"),
        ("postgresql://h/d?connect_timeout=1", "only these can be given: application_name"),
        ("postgresql://h/d?sslmode=", "sslmode is given without a value"),
        ("postgresql://h/d?password=%", "more than one way"),
        ("postgresql://h1,h2:5433/d", "not clear whose"),
        ("postgresql://h/", "name of the database is missing"),
        ("postgresql://h:0/d", "no number from 1"),
        ("postgresql://h:70000/d", "no number from 1"),
        ("postgresql://u:%e9@h/d", "UTF-8"),
    ],
)
def test_what_cannot_be_meant_is_refused(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"FRUGAL_DATABASE: .*{said}"):
        from_environment({"FRUGAL_DATABASE": url})


def test_hosts_may_be_several_a_socket_or_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Address.read("postgresql://h1,h2/d").hosts == ("h1", "h2")
    assert Address.read("postgresql://u@/d?host=/run/postgresql&port=5433").hosts == ("/run/postgresql",)
    assert Address.read("postgresql://[::1]:5433/d").hosts == ("::1",)
    monkeypatch.setenv("PGHOST", "elsewhere")
    assert Address.read("postgresql:///d").hosts == ("elsewhere",)


@pytest.mark.parametrize("url", MISREAD)
@pytest.mark.parametrize("password", [ODD, *HALVES, f"Zq7{WIDE}Xw9", "Zq7\udce9Xw9"])
def test_nothing_of_a_password_stands_in_an_error(url: str, password: str) -> None:
    """Neither in the words nor in a trace, whatever the password is made of."""
    for make in (lambda url: Settings(database=url), lambda url: from_environment({"FRUGAL_DATABASE": url})):
        try:
            settings = make(url.format(password))
        except (ValidationError, ValueError) as error:
            said = "".join(traceback.format_exception(error)) + repr(error)
        else:
            said = f"{settings!r} {settings} {settings.shown_database} {settings.address!r} {settings.address}"
        assert not [piece for piece in PIECES if piece in said], said


def test_nothing_of_a_password_stands_in_what_is_shown() -> None:
    settings = Settings(database=f"postgresql://me:{quote(ODD, '')}@h:5433/d?sslpassword={quote(ODD, '')}")
    assert settings.address.secret() == ODD
    shown = "postgresql://me:***@h:5433/d?sslpassword=***"
    assert settings.shown_database == shown
    assert f"database={shown!r}" in repr(settings)
    assert "Zq7" not in f"{settings!r} {settings} {settings.address!r}"


@pytest.mark.parametrize("url", MISREAD)
@pytest.mark.parametrize("command", [["serve"], ["worker"], ["migrate"], ["keys", "list"]], ids=lambda command: command[0])
def test_no_command_prints_a_password(
    url: str, command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logging.config.dictConfig", lambda configuration: None)  # the other tests' logs stay theirs
    for password in (ODD, quote(ODD, ""), *HALVES):
        assert cli.main([*command, "--database", url.format(password)]) == 2  # nobody listens on port 1
        said = capsys.readouterr()
        assert not [piece for piece in PIECES if piece in said.out + said.err], said


@pytest.mark.parametrize("mistyped", [["serve", "--databse"], ["serve"], ["serve", "--port"], ["keys", "list", "--kye"]], ids=" ".join)
def test_a_mistyped_option_prints_no_password_and_no_key(mistyped: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for secret in (f"postgresql://u:{ODD}@h/d", f"host=h password={ODD}", "frgl_Zq7Xw9"):
        with pytest.raises(SystemExit):
            cli.main([*mistyped, secret])
        said = capsys.readouterr()
        assert said.err.startswith("frugal: ")
        assert said.err.endswith(" --help\n")
        assert not [piece for piece in PIECES if piece in said.out + said.err], said


def test_a_server_with_an_address_in_its_environment_prints_no_password() -> None:
    for url in MISREAD:
        done = frugal("serve", FRUGAL_DATABASE=url.format(ODD))
        assert done.returncode == 2
        assert done.stderr.startswith("frugal: FRUGAL_DATABASE: "), done.stderr
        assert not [piece for piece in PIECES if piece in done.stdout + done.stderr]


def test_words_without_secrets() -> None:
    assert without_secrets("a b") == "a b"
    assert without_secrets("x POSTGRES://u:p @h y") == "x POSTGRES:***"


def in_file(folder: Path, data: bytes) -> Path:
    file = folder / "password"
    file.write_bytes(data)
    return file


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_file_holds_a_password(tmp_path: Path, end: bytes) -> None:
    file = in_file(tmp_path, ODD.encode() + end)
    assert read_password(file) == ODD
    settings = from_environment({"FRUGAL_DATABASE": "postgresql://u@h/d", "FRUGAL_DATABASE_PASSWORD_FILE": str(file)})
    assert settings.address.secret() == ODD
    assert settings.shown_database == "postgresql://u:***@h/d"
    assert from_environment(to_environment(settings)) == settings
    assert "Zq7" not in f"{settings!r} {to_environment(settings)}"


@pytest.mark.parametrize("data", [b"", b"\n", b"a\nb", b"a\0b", b"\xff", b"a" * 5000])
def test_a_file_without_a_password_is_refused(tmp_path: Path, data: bytes) -> None:
    given = {"FRUGAL_DATABASE": "postgresql://u@h/d", "FRUGAL_DATABASE_PASSWORD_FILE": str(in_file(tmp_path, data))}
    with pytest.raises(ValueError, match=r"FRUGAL_DATABASE_PASSWORD_FILE: .* should hold a password in one line"):
        from_environment(given)


def test_a_file_that_is_missing_or_one_too_many_or_a_placeholder_is_refused(tmp_path: Path) -> None:
    given = {"FRUGAL_DATABASE": "postgresql://u@h/d", "FRUGAL_DATABASE_PASSWORD_FILE": str(tmp_path / "none")}
    with pytest.raises(ValueError, match=r"FRUGAL_DATABASE_PASSWORD_FILE: .*none: No such file"):
        from_environment(given)
    given["FRUGAL_DATABASE_PASSWORD_FILE"] = str(in_file(tmp_path, b"change-me\n"))
    with pytest.raises(ValueError, match=r"FRUGAL_DATABASE_PASSWORD_FILE: the password is a placeholder"):
        from_environment(given)
    given["FRUGAL_DATABASE"] = "postgresql://u:p@h/d"
    with pytest.raises(ValueError, match=r"FRUGAL_DATABASE_PASSWORD_FILE: FRUGAL_DATABASE has a password too"):
        from_environment(given)
    given["FRUGAL_DATABASE"] = "sqlite:///x.db"  # which has none
    assert from_environment(given).sqlite_file == Path("x.db")


@pytest.fixture
def guarded(postgres: PostgresServer) -> Iterator[str]:
    """A database whose user must say an odd password; its address, without it."""
    folder = Path(str(postgres.server.pgdata)) / "pg_hba.conf"
    before = folder.read_text()
    with postgres.fresh() as url:
        name = Address.read(url).name
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("DROP ROLE IF EXISTS odd")
            db.execute(f"CREATE ROLE odd LOGIN SUPERUSER PASSWORD '{ODD}'")
        folder.write_text(f"local all odd scram-sha-256\n{before}")
        postgres.execute("SELECT pg_reload_conf()")
        try:
            yield f"postgresql://odd@/{name}?host={Address.read(url).hosts[0]}"
        finally:
            folder.write_text(before)
            postgres.execute("SELECT pg_reload_conf()")
    postgres.execute("DROP ROLE odd")


def with_password(url: str, password: str) -> str:
    return url.replace("odd@", f"odd:{quote(password, '')}@")


def test_both_drivers_get_in_with_an_odd_password(guarded: str, tmp_path: Path) -> None:
    by_file = Settings(database=guarded, database_password_file=in_file(tmp_path, ODD.encode()))
    for settings in (Settings(database=with_password(guarded, ODD)), by_file):
        with serving(settings) as client:
            publish(client, f"clinic{id(settings)}", clinic())
            assert client.get("/readyz").status_code == 200
            assert client.post("/v1/sessions", json={"model": f"clinic{id(settings)}"}).status_code == 201


def test_a_password_that_is_wrong_is_told_without_it(guarded: str) -> None:
    for wrong in (ODD[:-1], "Zq7"):
        done = frugal("migrate", FRUGAL_DATABASE=with_password(guarded, wrong))
        assert done.returncode == 2
        assert "password authentication failed" in done.stderr
        assert not [piece for piece in PIECES if piece in done.stdout + done.stderr]


def test_a_new_password_in_the_file_needs_no_new_start(guarded: str, tmp_path: Path) -> None:
    settings = Settings(database=guarded, database_password_file=in_file(tmp_path, ODD.encode()))
    database = open_database(settings)

    async def ping() -> None:
        ledger = await open_ledger(database, settings)
        await ledger.close()

    def works() -> None:
        database.engine.dispose()
        assert database.read(lambda db: db.execute(text("SELECT 1")).scalar()) == 1
        asyncio.run(ping())

    works()
    database.write(lambda db: db.execute(text("ALTER ROLE odd PASSWORD 'another'")))
    with pytest.raises(DatabaseAway):
        works()
    in_file(tmp_path, b"another\n")
    works()
    (tmp_path / "password").unlink()
    with pytest.raises(DatabaseAway):
        works()
    with pytest.raises(DatabaseAway):
        asyncio.run(ping())
    database.close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("POOL", "postgresql://u:s3cret@h/d"),
        ("LOG_LEVEL", "frgl_s3cret"),
        ("WORKERS", "http://u:s3cret@h"),
        ("DATABASE_PASSWORD_FILE", "s3cret"),
    ],
)
def test_a_secret_in_the_wrong_setting_is_not_printed(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"FRUGAL_{name}") as told:
        from_environment({"FRUGAL_DATABASE": "postgresql://u@db.example/d", f"FRUGAL_{name}": value})
    assert "s3cret" not in str(told.value)


@pytest.mark.parametrize("url", ["postgresql://u:s3cret@h", "http://u:s3cret@127.0.0.1:1", "http://u:s3cret@[::1", "u:s3cret@h"])
def test_a_secret_in_a_servers_address_is_not_printed(url: str) -> None:
    told = frugal("jobs", "list", "--url", url)
    assert told.returncode == 2
    assert "s3cret" not in told.stderr + told.stdout


def test_a_secret_for_a_host_is_not_printed() -> None:
    with pytest.raises(ValueError, match="is not a name or address") as told:
        bind("postgresql://u:s3cret@h/d", 0)
    assert "s3cret" not in str(told.value)
