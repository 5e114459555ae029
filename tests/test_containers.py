"""The image, the compose file and the proxy as they are written: what makes them safe to leave running is there. No engine is needed."""

import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from frugal.service.config import Settings
from frugal.service.errors import NotReady, TooLarge
from frugal.service.keyform import well_formed
from tests.journeys.processes import frugal

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
BUILD, FINAL = re.split(r"^FROM .*$", DOCKERFILE, flags=re.MULTILINE)[1:]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service["image"] == "frugal:latest"]
PROXY = (ROOT / "deploy" / "proxy" / "haproxy.cfg").read_text()


class TestImage:
    def test_it_is_plain_syntax_in_two_stages_of_one_slim_base(self) -> None:
        assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["python:3.11-slim-bookworm"] * 2
        assert not re.search(r"^# *syntax=|--mount|--link|--chmod|--parents|<<", DOCKERFILE, re.MULTILINE)

    def test_all_that_is_fetched_is_locked_with_hashes(self) -> None:
        for command in re.findall(r"pip (?:--python \S+ )?install\b[^&]*", DOCKERFILE):
            assert "--require-hashes" in command or "--no-index" in command, command
        assert "requirements-dev" not in DOCKERFILE
        assert not re.search(r"apt|curl|wget|ADD ", DOCKERFILE)
        build = (ROOT / "requirements-build.lock").read_text()
        assert build in (ROOT / "requirements-dev.lock").read_text()
        assert re.findall(r"^([a-z-]+)==", build, re.MULTILINE) == ["setuptools"]

    def test_the_last_stage_installs_nothing_and_has_no_pip(self) -> None:
        assert "--without-pip" in BUILD
        assert re.findall(r"pip \w+ .*", FINAL) == ["pip uninstall --yes --root-user-action=ignore pip setuptools wheel"]
        assert re.findall(r"^COPY (\S+)", FINAL, re.MULTILINE) == ["--from=build", "--from=build"]

    def test_it_runs_as_a_fixed_user_that_is_not_root(self) -> None:
        assert re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE) == ["10001:10001"]

    def test_kernels_are_baked_for_any_cpu_and_an_image_that_would_compile_is_not_built(self) -> None:
        assert "NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=/opt/frugal/kernels" in BUILD
        assert "NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=/tmp/kernels" in FINAL
        assert "sys.exit(said.compiled)" in FINAL[FINAL.index("USER") :]

    def test_its_health_is_readiness_asked_without_curl(self) -> None:
        assert re.search(r"HEALTHCHECK .*\\\n  CMD \[\"python\", .*/readyz", FINAL)

    def test_only_what_it_needs_goes_to_the_builder(self) -> None:
        lines = (ROOT / ".dockerignore").read_text().split()
        assert lines[0] == "*"
        assert not [line for line in lines if ".env" in line or ".git" in line or "tests" in line]
        for file in re.findall(r"^COPY (?!--from)(.*) \./$", DOCKERFILE, re.MULTILINE)[0].split():
            assert f"!{file}" in lines

    @pytest.mark.parametrize("writable", [True, False])
    def test_the_entrypoint_hands_over_with_the_kernels_or_a_word_that_they_are_missing(self, tmp_path: Path, writable: bool) -> None:
        baked, cache = tmp_path / "baked", tmp_path / "cache"
        baked.mkdir()
        (baked / "kernel.nbi").write_text("compiled")
        if not writable:
            cache.write_text("not a folder")
        script = (ROOT / "deploy" / "entrypoint").read_text().replace("/opt/frugal/kernels", str(baked))
        command = ["sh", "-c", script, "entrypoint", "sh", "-c", "echo $$ ran; exit 3"]
        done = subprocess.run(command, env={"NUMBA_CACHE_DIR": str(cache), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
        assert done.returncode == 3
        assert done.stdout.endswith(" ran\n")
        assert (cache / "kernel.nbi").is_file() if writable else "give the container a tmpfs" in done.stderr


class TestCompose:
    def test_these_are_the_services(self) -> None:
        assert set(SERVICES) == {"db", "migrate", "api", "trainer", "proxy"}
        assert OURS == ["migrate", "api", "trainer"]
        assert all(SERVICES[name]["build"] == "." for name in OURS)

    @pytest.mark.parametrize("name", SERVICES)
    def test_every_container_is_held_small(self, name: str) -> None:
        service = SERVICES[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["mem_limit"]
        assert service["pids_limit"] > 0
        assert service["logging"]["options"] == {"max-size": "20m", "max-file": "5"}
        assert all("size=" in place for place in service.get("tmpfs", ()))
        assert not service.get("privileged")
        assert "/var/run/docker.sock" not in str(service)

    def test_only_the_database_has_capabilities_and_only_to_become_its_own_user(self) -> None:
        added = {name: service["cap_add"] for name, service in SERVICES.items() if "cap_add" in service}
        assert added == {"db": ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]}

    def test_only_the_proxy_is_published_and_on_loopback(self) -> None:
        assert {name: service["ports"] for name, service in SERVICES.items() if "ports" in service} == {
            "proxy": ["127.0.0.1:${PROXY_PORT:-8000}:8000"]
        }
        assert [name for name, service in SERVICES.items() if "outside" in service["networks"]] == ["proxy"]
        assert COMPOSE["networks"]["inside"] == {"internal": True}

    def test_what_lives_long_comes_back_and_what_ends_does_not(self) -> None:
        policies = {name: service["restart"] for name, service in SERVICES.items()}
        assert policies.pop("migrate") == "no"
        assert set(policies.values()) == {"unless-stopped"}

    def test_each_waits_for_what_it_needs(self) -> None:
        assert SERVICES["migrate"]["depends_on"] == {"db": {"condition": "service_healthy"}}
        assert SERVICES["api"]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
        assert SERVICES["proxy"]["depends_on"] == {"api": {"condition": "service_healthy"}}
        assert "--host=127.0.0.1" in SERVICES["db"]["healthcheck"]["test"]

    def test_the_data_outlives_the_containers_in_any_release_of_postgres(self) -> None:
        assert SERVICES["db"]["volumes"] == ["db:/var/lib/postgresql"]
        assert "db" in COMPOSE["volumes"]

    def test_nothing_starts_without_secrets(self) -> None:
        text = (ROOT / "docker-compose.yml").read_text()
        assert set(re.findall(r"\$\{(POSTGRES_PASSWORD|FRUGAL_ADMIN_KEY)([^}]*)\}", text)) == {
            ("POSTGRES_PASSWORD", ":?run make env first"),
            ("FRUGAL_ADMIN_KEY", ":?run make env first"),
        }

    def test_the_server_has_two_workers_and_leaves_the_tables_to_the_one_shot(self) -> None:
        api = SERVICES["api"]
        assert api["command"] == ["frugal", "serve", "--host", "0.0.0.0", "--workers", "2"]
        assert api["environment"]["FRUGAL_MIGRATE"] == "never"
        assert SERVICES["migrate"]["command"] == ["frugal", "migrate", "--example"]

    def test_a_trainer_yields_to_the_servers_and_its_child_ends_before_its_container(self) -> None:
        trainer = SERVICES["trainer"]
        assert trainer["command"] == ["frugal", "worker"]
        assert trainer["cpu_shares"] < 1024 / 10
        assert trainer["scale"] == "${TRAINER_REPLICAS:-1}"
        assert trainer["environment"]["FRUGAL_MIGRATE"] == "never"
        allowed = int(trainer["environment"]["FRUGAL_TRAINING_MEMORY"].rpartition("-")[2].rstrip("}"))
        assert allowed + 2**30 <= int(trainer["mem_limit"].rstrip("g")) * 2**30
        assert "FRUGAL_ADMIN_KEY" not in trainer["environment"]

    def test_it_has_nothing_that_compose_1_29_refuses(self) -> None:
        assert not {"name", "version", "configs", "secrets"} & set(COMPOSE)
        for service in SERVICES.values():
            assert not {"develop", "pull_policy", "annotations"} & set(service)
            assert "start_interval" not in service.get("healthcheck", {})
            assert all(set(needed) == {"condition"} for needed in service.get("depends_on", {}).values())

    def test_a_server_drains_for_longer_than_the_proxy_takes_to_notice(self) -> None:
        found = re.search(r"inter (\d+)s fastinter (\d+)ms .*fall (\d+)", PROXY)
        assert found
        interval, fast, fall = float(found[1]), int(found[2]) / 1000, int(found[3])
        drain = SERVICES["api"]["environment"]["FRUGAL_DRAIN"]
        assert drain >= 2 * (interval + (fall - 1) * fast)
        assert int(SERVICES["api"]["stop_grace_period"].rstrip("s")) > drain + 30

    def test_every_server_that_the_proxy_takes_finds_connections_to_the_database(self) -> None:
        slots = int(re.findall(r"server-template api (\d+) ", PROXY)[0])
        most = int(SERVICES["db"]["command"][-1].removeprefix("max_connections="))
        pool: int = Settings.model_fields["pool"].default
        assert slots * 2 * (pool + pool // 2) < most - 20


class TestProxy:
    def test_slow_requests_end(self) -> None:
        limits = dict(re.findall(r"^ +timeout ([a-z-]+) (\d+)s", PROXY, re.MULTILINE))
        assert {"http-request", "http-keep-alive", "client", "connect", "queue", "server", "check"} <= set(limits)
        assert int(limits["http-request"]) <= 10
        assert int(limits["server"]) >= 3 * 15  # events send a comment every 15 seconds
        assert "wait-for-body time 10s" in PROXY

    def test_it_routes_a_list_in_which_metrics_and_the_detail_of_readiness_are_not(self) -> None:
        assert re.findall(r"acl served (.*)", PROXY) == ["path_beg /v1/", "path /livez /docs /redoc /openapi.json"]
        assert "if ready { nbsrv(api) gt 0 }" in PROXY

    def test_its_limits_of_bodies_are_the_services_own(self) -> None:
        given = SERVICES["proxy"]["environment"]
        assert given["FRUGAL_MAX_BODY"] == f"${{FRUGAL_MAX_BODY:-{Settings.model_fields['max_body'].default}}}"
        assert given["FRUGAL_MAX_UPLOAD"] == f"${{FRUGAL_MAX_UPLOAD:-{Settings.model_fields['max_upload'].default}}}"
        assert given["FRUGAL_MAX_DATASET"] == f"${{FRUGAL_MAX_DATASET:-{2**29}}}"
        assert set(re.findall(r"\$\{(\w+)\}", PROXY)) == set(given)

    def test_nothing_that_would_be_done_twice_is_sent_twice(self) -> None:
        steps = re.findall(r"acl step path_reg (.*)", PROXY)[0]
        for path in ("/v1/sessions/x/answers", "/v1/sessions/x/finish", "/v1/next", "/v1/predict"):
            assert re.search(steps, path)
        for path in ("/v1/sessions", "/v1/admin/keys", "/v1/admin/models", "/v1/sessions/x/y/answers", "/v1/admin/datasets"):
            assert not re.search(steps, path)
        assert "disable-l7-retry unless reads or step or opening named" in PROXY

    def test_nobody_says_from_outside_for_whom_they_forward(self) -> None:
        for header in ("X-Forwarded- -m beg", "Forwarded", "X-Real-IP", "Via"):
            assert f"http-request del-header {header}\n" in PROXY

    def test_its_errors_are_problems_of_the_table_in_the_docs(self) -> None:
        docs = (ROOT / "docs" / "errors.md").read_text()
        kind = r"""status (\d{3}) content-type application/problem\+json lf-string '{"type":"urn:frugal:problem:([a-z-]+)","""
        told = re.findall(kind + r'"title":"([^"]*)","status":(\d+)', PROXY)
        assert {status for status, *_ in told} == {"400", "404", "408", "413", "500", "502", "503", "504"}
        for status, slug, title, again in told:
            assert status == again
            assert f"`{slug}`" in docs
            for known in (TooLarge, NotReady):
                assert slug != known.slug or (title, int(status)) == (known.title, known.status)
        for line in PROXY.splitlines():
            assert "lf-string" not in line or "hdr X-Request-ID" in line
            assert not re.search(r"status 50[234]", line) or "hdr Retry-After" in line


class TestSecrets:
    def make(self, file: Path) -> str:
        return subprocess.run([ROOT / "deploy" / "env", file], capture_output=True, text=True, check=True).stdout

    def test_they_are_random_valid_and_for_their_owner_alone(self, tmp_path: Path) -> None:
        found = []
        for name in ("one", "two"):
            self.make(tmp_path / name)
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
            lines = [line for line in (tmp_path / name).read_text().splitlines() if not line.startswith("#")]
            found.append(dict(line.split("=", 1) for line in lines))
        one, two = found
        assert set(one) == {"POSTGRES_PASSWORD", "FRUGAL_ADMIN_KEY"}
        assert well_formed(one["FRUGAL_ADMIN_KEY"])
        assert re.fullmatch("[0-9a-f]{64}", one["POSTGRES_PASSWORD"])
        assert not set(one.values()) & set(two.values())
        Settings(database=f"postgresql://frugal:{one['POSTGRES_PASSWORD']}@db/frugal", admin_key=one["FRUGAL_ADMIN_KEY"])

    def test_those_that_are_there_stay(self, tmp_path: Path) -> None:
        (tmp_path / "kept").write_text("POSTGRES_PASSWORD=mine\n")
        assert "stays as it is" in self.make(tmp_path / "kept")
        assert (tmp_path / "kept").read_text() == "POSTGRES_PASSWORD=mine\n"

    def test_the_server_does_not_start_with_placeholders(self) -> None:
        for database, key, name in (
            ("postgresql://frugal:change-me@db/frugal", "", "FRUGAL_DATABASE"),
            ("postgresql://frugal:7f3a9c@db/frugal", "change-me", "FRUGAL_ADMIN_KEY"),
        ):
            done = frugal("serve", FRUGAL_DATABASE=database, FRUGAL_ADMIN_KEY=key)
            assert done.returncode == 2
            assert done.stderr.startswith(f"frugal: {name}: ")
            assert done.stderr.count("\n") == 1


def test_the_readme_has_three_commands_from_here_to_a_session() -> None:
    section = (ROOT / "README.md").read_text().split("## In containers\n")[1].split("\n## ")[0]
    commands = re.findall(r"^    (.*)$", section, re.MULTILINE)
    assert len(commands) == 3
    assert commands[0] == "make up"
    assert all("Bearer $FRUGAL_ADMIN_KEY" in command for command in commands[1:])
