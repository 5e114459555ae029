"""Data sets over HTTP, on both databases: what is stored, told, priced, refused and deleted."""

import gzip
import json
import socket
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from frugal.service.config import Settings
from frugal.service.errors import DatabaseAway
from tests.databases import rows
from tests.serving import problem, serving

HEART = (Path(__file__).parents[3] / "examples" / "heart" / "heart.csv").read_bytes()
SMALL = b"age,colour,sick\n31,red,no\n,blue,yes\n44.5,red,no\n"


def push(client: httpx.Client, name: str = "small", data: bytes = SMALL, **more: str) -> httpx.Response:
    return client.post("/v1/admin/datasets", params={"name": name, **more}, content=data)


def test_a_table_is_typed_described_and_stored(client: httpx.Client, database_url: str) -> None:
    reply = push(client)
    assert reply.status_code == 201
    assert reply.headers["location"] == "/v1/admin/datasets/small"
    body = reply.json()
    assert (body["name"], body["rows"], body["bytes"], body["owner"]) == ("small", 3, len(SMALL), "local")
    age, colour, sick = body["columns"]
    price = {"cost": 1.0, "group": None, "cost_in_group": None, "delayed": False, "unit": None, "question": None}
    found = {"name": "age", "kind": "numeric", "missing": 1, "distinct": 2, "categories": None, "low": 31.0, "high": 44.5, "whole": False}
    assert age == found | price
    assert (colour["kind"], colour["categories"], colour["missing"], colour["low"]) == ("categorical", ["blue", "red"], 0, None)
    assert sick["categories"] == ["no", "yes"]
    assert client.get("/v1/admin/datasets/small").json() == body
    assert body.pop("warnings") == []
    assert client.get("/v1/admin/datasets").json()["items"] == [body | {"columns": 3}]
    assert rows(database_url, "SELECT count(*) FROM datasets") == [(1,)]


def test_gzip_is_told_by_its_bytes_and_chunked_bodies_are_taken(client: httpx.Client) -> None:
    packed = gzip.compress(HEART)
    reply = client.post("/v1/admin/datasets", params={"name": "heart"}, content=(packed[i : i + 100] for i in range(0, len(packed), 100)))
    assert reply.status_code == 201
    assert reply.json()["rows"] == 303
    assert push(client, "heart", HEART).status_code == 200  # the same table, though its bytes differ


def test_parquet_is_taken(client: httpx.Client) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table({"age": [31, None, 44], "colour": ["red", "blue", None]}), sink)
    body = push(client, "parquet", sink.getvalue().to_pybytes()).json()
    assert body["rows"] == 3
    assert [(column["kind"], column["missing"]) for column in body["columns"]] == [("numeric", 1), ("categorical", 1)]


def test_the_same_table_again_is_no_second_one(client: httpx.Client, database_url: str) -> None:
    first = push(client).json()
    again = push(client)
    assert (again.status_code, again.json()) == (200, first)
    assert again.headers["idempotent-replayed"] == "true"
    problem(push(client, data=SMALL + b"9,red,no\n"), 409, "dataset-exists")
    assert rows(database_url, "SELECT count(*) FROM datasets") == [(1,)]
    assert rows(database_url, "SELECT count(*) FROM archives") == [(2,)]  # the clinic's model, and this


def test_costs_come_with_the_table_or_later(client: httpx.Client) -> None:
    costs = {"age": 2.5, "colour": {"cost": 7, "group": "look", "cost_in_group": 1, "question": "Which colour?"}}
    body = push(client, costs=json.dumps(costs)).json()
    assert [column["cost"] for column in body["columns"]] == [2.5, 7.0, 1.0]
    assert (body["columns"][1]["group"], body["columns"][1]["question"]) == ("look", "Which colour?")
    changed = client.put("/v1/admin/datasets/small/costs", json={"age": 3}).json()
    assert [column["cost"] for column in changed["columns"]] == [3.0, 1.0, 1.0]
    problem(client.put("/v1/admin/datasets/none/costs", json={"age": 3}), 404, "dataset-not-found")


@pytest.mark.parametrize(
    "costs",
    ['{"height": 1}', '{"age": -1}', '{"age": 0.0000001}', '{"age": "1"}', '{"age": NaN}', '{"age": 1e400}', '{"age": {"group": "g"}}',
     '{"age": {"cost": 1, "cost_in_group": 1}}', "[]", "{", "1", '{"age": 1, "age": 2}'],
)  # fmt: skip
def test_costs_that_cannot_be_are_refused(client: httpx.Client, costs: str, database_url: str) -> None:
    problem(push(client, costs=costs), 422, "invalid-request")
    assert rows(database_url, "SELECT count(*) FROM datasets") == [(0,)]
    push(client)
    reply = client.put("/v1/admin/datasets/small/costs", content=costs, headers={"Content-Type": "application/json"})
    problem(reply, 422, "invalid-request")


def test_columns_are_left_out_read_as_numbers_and_cells_as_missing(client: httpx.Client) -> None:
    data = b"id,age,size,sex\nA,31,7,f\nB,?,NA,m\nC,young,-1,NA\nD,44,9,f\n"
    costs = json.dumps({"id": 9, "age": 2, "size": 3, "sex": 4})
    body = push(client, data=data, drop="id", numeric="age", missing="NA,?,-1", costs=costs).json()
    told = [(column["name"], column["kind"], column["missing"], column["cost"]) for column in body["columns"]]
    assert told == [("age", "numeric", 2, 2.0), ("size", "numeric", 2, 3.0), ("sex", "categorical", 1, 4.0)]
    assert body["warnings"] == ["'age': 1 cell is no number and taken as missing: 1 value (row 4)"]
    assert client.get("/v1/admin/datasets/small").json() == body
    again = push(client, data=data, drop="id", numeric="age", missing="NA,?,-1")
    assert (again.status_code, again.json()) == (200, body)
    several = client.post("/v1/admin/datasets", params={"name": "other", "drop": ["id", "age"], "missing": ["NA", "-1"]}, content=data)
    assert [column["name"] for column in several.json()["columns"]] == ["size", "sex"]


def test_what_is_remarkable_about_a_table_is_told_without_its_values(client: httpx.Client) -> None:
    head, line = "case,when,ward,size,sick\n", "secret-{0},2026-01-{1:02},secret,{2},{3}\n"
    data = head + "".join(line.format(i, 1 + i % 28, "secret" if i == 7 else i % 5, i % 2) for i in range(40))
    body = push(client, data=data.encode(), costs='{"case": 1, "when": 2, "ward": 2}').json()
    assert body["warnings"] == [
        "'case' has a different word in nearly every row, like a name or a case number: leave it out with drop=case",
        "'when' holds dates, which are not read as such: make numbers of them, such as days since a day, or leave it out with drop=when",
        "'ward' has the same value in every row: leave it out with drop=ward",
        "'size' is taken as words, because 1 cell is no number: 1 value (row 9); delete the data set and send it again with numeric=size, "
        "or with what stands there as missing",
        "no price for 'size', 'sick': each costs 1, but the label, which needs none",
    ]
    assert not any("secret" in text for text in body["warnings"])
    assert client.get("/v1/admin/datasets/small").json() == body
    priced = client.put("/v1/admin/datasets/small/costs", json={"case": 1, "when": 2, "ward": 2, "size": 3}).json()
    assert priced["warnings"] == body["warnings"][:-1]  # what is not priced may be the label


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"drop": "colour,agee"}, "drop: name 2 of 2 is no column of the table (did you mean 'age'?)."),
        ({"numeric": "weight"}, "numeric: name 1 of 1 is no column of the table."),
        ({"numeric": "colour"}, "numeric: no cell of the column 'colour' is a number."),
        ({"drop": "age,colour,sick"}, "drop: every column is left out: keep some."),
        ({"missing": ",".join(map(str, range(101)))}, "missing: more than 100 different cells mean missing: name fewer."),
        ({"costs": '{"width": 1}'}, "costs.#1: the data set has no column of this name; it has 'age', 'colour', 'sick'."),
        (
            {"costs": '{"colr": 1}'},
            "costs.#1 (did you mean 'colour'?): the data set has no column of this name; it has 'age', 'colour', 'sick'.",
        ),
    ],
)
def test_choices_that_do_not_fit_the_table_are_refused(client: httpx.Client, database_url: str, choice: dict[str, str], said: str) -> None:
    assert problem(push(client, **choice), 422, "invalid-request")["detail"] == said
    assert rows(database_url, "SELECT count(*) FROM datasets") == [(0,)]
    assert rows(database_url, "SELECT count(*) FROM archives") == [(1,)]  # the clinic's


def test_a_column_that_is_left_out_passes_no_limit(database_url: str) -> None:
    data = b"note,age\n" + b"".join(b"word %d,%d\n" % (i, i % 3) for i in range(50))
    with serving(Settings(database=database_url, max_categories=20)) as client:
        assert problem(push(client, data=data), 422, "bad-table")["limit"] == 20
        assert push(client, data=data, drop="note").status_code == 201


@pytest.mark.parametrize("name", ["", "Heart", "a/b", "../x", "x" * 65, "x" * 300, "herz💔", "-x", "a b", "x\n"])
def test_names_that_cannot_be_are_refused(client: httpx.Client, name: str) -> None:
    assert "1 to 64" in problem(push(client, name), 422, "invalid-request")["detail"]
    if name and "/" not in name:
        problem(client.get(f"/v1/admin/datasets/{quote(name)}"), 404, "dataset-not-found")
        problem(client.delete(f"/v1/admin/datasets/{quote(name)}"), 404, "dataset-not-found")


@pytest.mark.parametrize(
    ("data", "row", "column"),
    [
        (b"", None, None),
        (b"a,b\n", 2, None),
        (b"a,b\n1,2\n1,2,3\n", 3, None),
        (b"a,b\n1,2\n1\n", 3, None),
        (b'a,b\n1,"2\n', 2, "b"),
        (b"a,a\n1,2\n", 1, "a"),
        (b"a,\n1,2\n", 1, None),
        (b"a,b\n1,\xff\n", 2, "b"),
        (b"PAR1 and nothing more", None, None),
        (gzip.compress(SMALL, mtime=0)[:40], None, None),
        (b"\x1f\x8b not gzip", None, None),
    ],
)
def test_what_is_no_table_is_refused_with_its_place(
    client: httpx.Client, database_url: str, data: bytes, row: int | None, column: str | None
) -> None:
    before = rows(database_url, "SELECT count(*) FROM archives")
    body = problem(push(client, data=data), 422, "bad-table")
    assert body.get("row", row) == row
    assert body.get("column") == column
    assert body["detail"].endswith(".")
    assert rows(database_url, "SELECT count(*) FROM archives") == before
    assert rows(database_url, "SELECT count(*) FROM datasets") == [(0,)]


def test_bom_crlf_quotes_and_no_last_newline(client: httpx.Client) -> None:
    body = push(client, data=b'\xef\xbb\xbfa,"b, c"\r\n1,"x ""y"""\r\n2,"line\nbreak"').json()
    assert [column["name"] for column in body["columns"]] == ["a", "b, c"]
    assert body["columns"][1]["categories"] == ["line\nbreak", 'x "y"']


@pytest.mark.parametrize(
    ("limit", "value", "data", "status"),
    [
        ("max_dataset", 2048, b"a,b\n" + b"1,2\n" * 1000, 413),
        ("max_dataset_unpacked", 2048, gzip.compress(b"a,b\n" + b"1,2\n" * 1000, mtime=0), 413),
        ("max_dataset_rows", 10, b"a,b\n" + b"1,2\n" * 11, 413),
        ("max_dataset_columns", 2, b"a,b,c\n1,2,3\n", 413),
        ("max_field", 64, b"a,b\n1," + b"x" * 65 + b"\n", 413),
        ("max_categories", 3, b"a,b\n1,x\n1,y\n1,z\n1,w\n", 422),
    ],
)
def test_limits(database_url: str, limit: str, value: int, data: bytes, status: int) -> None:
    with serving(Settings(database=database_url, **{limit: value})) as client:
        slug = "too-large" if status == 413 else "bad-table"
        for content in (data, iter([data])):  # with its length announced, and without
            body = problem(client.post("/v1/admin/datasets", params={"name": "large"}, content=content), status, slug)
            assert body["limit"] == value
        assert rows(database_url, "SELECT count(*) FROM datasets") == [(0,)]
        assert rows(database_url, "SELECT count(*) FROM archives") == [(0,)]


def test_what_is_no_table_by_its_type_is_refused(client: httpx.Client) -> None:
    for kind in ("application/json", "multipart/form-data; boundary=x"):
        reply = client.post("/v1/admin/datasets", params={"name": "x"}, content=SMALL, headers={"Content-Type": kind})
        problem(reply, 415, "unsupported-media-type")
    reply = client.post("/v1/admin/datasets", params={"name": "x"}, content=SMALL, headers={"Content-Encoding": "br"})
    problem(reply, 415, "unsupported-media-type")


def test_a_client_that_falls_silent_makes_room_for_others(client: httpx.Client) -> None:
    client.app.state.settings = client.app.state.settings.model_copy(update={"body_timeout": 0.5})  # type: ignore[attr-defined]
    head = b"POST /v1/admin/datasets?name=slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\na,b\n"
    silent = [socket.create_connection(("127.0.0.1", client.base_url.port)) for _ in range(2)]
    for each in silent:
        each.sendall(head)
    assert push(client).status_code == 201
    for each in silent:
        assert each.recv(100).startswith(b"HTTP/1.1 408 ")
        each.close()


def test_a_failing_database_keeps_nothing_of_an_upload(client: httpx.Client, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise DatabaseAway()

    monkeypatch.setattr("frugal.service.store.archives.Staging.seal", away)
    problem(push(client), 503, "database-away")
    assert rows(database_url, "SELECT count(*) FROM archives") == [(1,)]  # the clinic's


def test_deleting_frees_the_name_and_the_bytes(client: httpx.Client, database_url: str) -> None:
    push(client)
    assert client.delete("/v1/admin/datasets/small").status_code == 204
    problem(client.get("/v1/admin/datasets/small"), 404, "dataset-not-found")
    problem(client.delete("/v1/admin/datasets/small"), 404, "dataset-not-found")
    assert rows(database_url, "SELECT count(*) FROM archives") == [(1,)]  # the clinic's
    assert push(client).status_code == 201


def test_lists_have_pages(client: httpx.Client) -> None:
    for name in ("b", "a", "c"):
        push(client, name)
    first = client.get("/v1/admin/datasets", params={"limit": 2}).json()
    assert [item["name"] for item in first["items"]] == ["a", "b"]
    rest = client.get("/v1/admin/datasets", params={"cursor": first["next"]}).json()
    assert ([item["name"] for item in rest["items"]], rest["next"]) == (["c"], None)
    problem(client.get("/v1/admin/datasets", params={"cursor": "A/"}), 422, "invalid-request")


def test_deeds_are_in_the_audit_log(client: httpx.Client) -> None:
    push(client)
    client.put("/v1/admin/datasets/small/costs", json={"age": 3})
    client.delete("/v1/admin/datasets/small")
    deeds = [(deed["action"], deed["subject"]) for deed in client.get("/v1/admin/audit").json()["items"]][:3]
    assert deeds == [("dataset.delete", "small"), ("dataset.price", "small"), ("dataset.store", "small")]
