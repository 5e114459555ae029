"""What a job may become, on both databases: every transition, and every write that comes too late."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from frugal.models import dump
from frugal.service.config import Settings
from frugal.service.errors import DatasetInUse, DatasetNotFound, InvalidRequest, JobNotFound, JobOver, KeyReused
from frugal.service.registry.describing import describe
from frugal.service.registry.versions import read_ensemble, resolve
from frugal.service.store import archives
from frugal.service.store import job_rows as stored
from frugal.service.store.audit import Actor
from frugal.service.store.db import Database, open_database
from frugal.service.store.ids import new_id
from frugal.service.tables import Reader
from frugal.service.training import datasets, jobs
from frugal.service.training.jobs import LeaseLost
from frugal.service.training.spec import Spec
from tests.databases import rows
from tests.examples import clinic

ME = Actor("me")
LEASE = 30.0


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = open_database(Settings(database=database_url))
    with Reader() as reader:
        reader.feed(b"age,colour,sick\n" + b"31,red,no\n40,blue,yes\n" * 10)
        table = reader.finish()
    datasets.store(database, ME, "small", table, 100, {"age": {"cost": 2.0}})
    yield database
    database.close()


def spec(**given: Any) -> Spec:
    asked = {"dataset": "small", "label": "sick", "learner": "budget-forest", "publish": {"name": "small", "alias": "live"}}
    return Spec(**(asked | given))


def submit(database: Database, **given: Any) -> Any:
    return jobs.submit(database, ME, spec(**given))[0]


def status(database: Database, id: Any) -> str:
    return jobs.read(database, id).status


def lapse(database: Database) -> None:
    """Let every lease be over, as if its worker had not been heard of for so long."""
    database.write(stored.lapse_all)


def events(database: Database, id: Any) -> list[str]:
    return [event.kind for event in database.read(lambda db: stored.events_after(db, id, 0, 100))]


def finish(database: Database, claim: jobs.Claim) -> str:
    ensemble = clinic()
    return jobs.finish(database, claim, archives.stage(database, dump(ensemble)), describe(ensemble), [])


def test_queued_running_done(database: Database, database_url: str) -> None:
    job = submit(database)
    assert (job.status, job.attempts, job.spec["costs"]) == ("queued", 0, {"age": {"cost": 2.0}})
    claim = jobs.claim(database, LEASE)
    assert claim is not None
    assert (claim.job.id, claim.job.status, claim.job.attempts) == (job.id, "running", 1)
    assert jobs.claim(database, LEASE) is None
    jobs.renew(database, claim, LEASE, {"phase": "growing", "fraction": 0.5, "trees": 3, "mean_cost": None}, True)
    assert jobs.read(database, job.id).progress["trees"] == 3
    assert finish(database, claim) == "small:1"
    done = jobs.read(database, job.id)
    assert (done.status, done.result["model"], done.lease_token) == ("done", {"name": "small", "version": 1}, None)
    assert resolve(database, "small@live") == ("small", 1)
    assert events(database, job.id) == ["queued", "running", "progress", "done"]
    assert rows(database_url, "SELECT action FROM audit_log ORDER BY id")[-2:] == [("job.submit",), ("version.publish",)]


def test_jobs_are_claimed_oldest_first_and_once(database: Database) -> None:
    submitted = [submit(database, seed=seed).id for seed in range(12)]
    with ThreadPoolExecutor(6) as pool:
        claims = list(pool.map(lambda _: jobs.claim(database, LEASE), range(16)))
    found = [claim.job.id for claim in claims if claim]
    assert sorted(found) == submitted
    assert len({claim.token for claim in claims if claim}) == 12


def test_a_worker_that_is_not_heard_of_loses_its_job(database: Database, database_url: str) -> None:
    job = submit(database)
    frozen = jobs.claim(database, LEASE)
    lapse(database)
    other = jobs.claim(database, LEASE)
    assert frozen is not None
    assert other is not None
    assert (other.job.id, other.job.attempts) == (job.id, 2)
    for late in (
        lambda: jobs.renew(database, frozen, LEASE, {}, True),
        lambda: finish(database, frozen),
        lambda: jobs.fail(database, frozen, "too late"),
        lambda: jobs.again(database, frozen, "too late"),
        lambda: jobs.release(database, frozen),
    ):
        with pytest.raises(LeaseLost):
            late()
    assert rows(database_url, "SELECT count(*) FROM versions") == [(0,)]
    assert events(database, job.id) == ["queued", "running", "running"]
    assert finish(database, other) == "small:1"
    with pytest.raises(LeaseLost):
        finish(database, frozen)
    assert rows(database_url, "SELECT count(*) FROM versions") == [(1,)]


def test_a_renewed_lease_holds(database: Database) -> None:
    submit(database)
    claim = jobs.claim(database, LEASE)
    lapse(database)
    assert claim is not None
    jobs.renew(database, claim, LEASE, {}, False)  # nobody has taken it: it is still this worker's
    assert jobs.claim(database, LEASE) is None


def test_three_attempts_and_no_more(database: Database) -> None:
    job = submit(database)
    for attempt in (1, 2, 3):
        claim = jobs.claim(database, LEASE)
        assert claim is not None
        assert claim.job.attempts == attempt
        lapse(database)
    assert jobs.claim(database, LEASE) is None
    failed = jobs.read(database, job.id)
    assert (failed.status, failed.dataset_id) == ("failed", None)
    assert "3 times" in failed.failure


def test_a_child_that_dies_is_tried_again_three_times(database: Database) -> None:
    job = submit(database)
    for attempt in (1, 2, 3):
        claim = jobs.claim(database, LEASE)
        assert claim is not None
        jobs.again(database, claim, "it was killed")
        assert status(database, job.id) == ("queued" if attempt < 3 else "failed")
    assert "it was killed" in jobs.read(database, job.id).failure


def test_stopping_a_worker_is_no_attempt(database: Database) -> None:
    job = submit(database)
    for _ in range(5):
        claim = jobs.claim(database, LEASE)
        assert claim is not None
        jobs.release(database, claim)
    assert (status(database, job.id), jobs.read(database, job.id).attempts) == ("queued", 0)


@pytest.mark.parametrize("running", [False, True])
def test_cancel(database: Database, database_url: str, running: bool) -> None:
    job = submit(database)
    claim = jobs.claim(database, LEASE) if running else None
    assert jobs.cancel(database, ME, job.id).status == "cancelled"
    assert jobs.cancel(database, ME, job.id).status == "cancelled"  # twice is the same as once
    assert jobs.claim(database, LEASE) is None
    if claim is not None:
        with pytest.raises(LeaseLost):
            finish(database, claim)
    assert rows(database_url, "SELECT count(*) FROM versions") == [(0,)]
    assert events(database, job.id).count("cancelled") == 1


def test_what_is_over_cannot_be_cancelled(database: Database) -> None:
    job = submit(database)
    claim = jobs.claim(database, LEASE)
    assert claim is not None
    finish(database, claim)
    with pytest.raises(JobOver, match="done"):
        jobs.cancel(database, ME, job.id)
    with pytest.raises(JobNotFound):
        jobs.cancel(database, ME, new_id())


def test_cancelling_and_publishing_at_once_have_one_winner(database: Database, database_url: str) -> None:
    for _ in range(10):
        job = submit(database)
        claim = jobs.claim(database, LEASE)
        assert claim is not None
        before = rows(database_url, "SELECT count(*) FROM versions")[0][0]
        start = threading.Barrier(2)

        def end(work: Any, start: threading.Barrier = start) -> bool:
            start.wait()
            try:
                work()
                return True
            except (LeaseLost, JobOver):
                return False

        with ThreadPoolExecutor(2) as pool:
            published = pool.submit(end, lambda claim=claim: finish(database, claim))
            cancelled = pool.submit(end, lambda job=job: jobs.cancel(database, ME, job.id))
        assert published.result() != cancelled.result()
        after = rows(database_url, "SELECT count(*) FROM versions")[0][0]
        assert after - before == published.result()
        assert status(database, job.id) == ("done" if published.result() else "cancelled")


def test_a_data_set_is_kept_while_a_job_needs_it(database: Database) -> None:
    first, second = submit(database), submit(database, seed=1)
    for _ in range(2):
        with pytest.raises(DatasetInUse):
            datasets.delete(database, ME, "small")
        claim = jobs.claim(database, LEASE)
        assert claim is not None
        with pytest.raises(DatasetInUse):
            datasets.delete(database, ME, "small")
        finish(database, claim)
    datasets.delete(database, ME, "small")
    assert [status(database, job.id) for job in (first, second)] == ["done", "done"]
    with pytest.raises(DatasetNotFound):
        submit(database)


def test_an_idempotency_key_submits_one_job(database: Database) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: jobs.submit(database, ME, spec(), ("key", "hash")), range(8)))
    assert len({row.id for row, _ in found}) == 1
    assert sorted(replayed for _, replayed in found) == [False] + [True] * 7
    with pytest.raises(KeyReused):
        jobs.submit(database, ME, spec(), ("key", "another"))
    assert jobs.submit(database, Actor("you"), spec(), ("key", "another"))[1] is False  # keys belong to owners


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"label": "ill"}, "label: the data set has no column of this name; it has 'age', 'colour', 'sick'"),
        ({"costs": {"height": {"cost": 1}}}, "costs.#1: the data set has no column of this name; it has 'age', 'colour'"),
        ({"costs": {"sick": {"cost": 1}}}, "'sick' is the label"),
        ({"learner": "oracle"}, "the learners are frontier, priced-boosting"),
        ({"learner": "greedy-tree", "budget": 5.0}, "takes none; leave it out, or use frontier."),
        ({"learner": "frontier", "params": {"points": False}}, "params.points: frontier is made of its operating points; leave it out"),
        ({"params": {"class_weight": {"maybe": 2.0, "yes": 1.0}}}, "class_weight: 1 of the labels that the weights name are no values of"),
        ({"params": {"categorical": ["sick"]}}, "no feature of this name; it has 'age', 'colour'"),
        ({"publish": {"name": "A/B", "alias": None}}, "1 to 64"),
        ({"publish": {"name": "a", "alias": "💔"}}, "1 to 64"),
        ({"penalties": {"maybe": {"no": 1.0}}}, "1 of the labels that they name are no values of 'sick'"),
        ({"penalties": {"no": {"no": 1.0}}}, "penalties: 'no' said for 'no' is no mistake: leave it out."),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(database: Database, database_url: str, given: dict, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        submit(database, **given)
    assert said in caught.value.detail
    assert rows(database_url, "SELECT count(*) FROM jobs") == [(0,)]


def test_features_without_a_price_are_told_with_the_job(database: Database) -> None:
    with Reader() as reader:
        reader.feed(b"a,b,c,y\n" + b"".join(b"%d,%d,%d,%d\n" % (i, i % 3, i % 5, i % 2) for i in range(40)))
        datasets.store(database, ME, "priced", reader.finish(), 1, {"a": {"cost": 2.0}})
    assert submit(database, dataset="priced", label="y").spec["warnings"] == ["no price for 'b', 'c': each costs 1"]
    assert submit(database, dataset="priced", label="y", costs={"b": {"cost": 1.0}}).spec["warnings"] == ["no price for 'c': it costs 1"]
    assert submit(database, dataset="priced", label="y", costs={"b": {"cost": 1.0}, "c": {"cost": 1.0}}).spec["warnings"] == []
    datasets.set_costs(database, ME, "priced", {})
    assert submit(database, dataset="priced", label="y").spec["warnings"] == []  # nothing is priced


@pytest.mark.parametrize(("label", "there"), [("0", True), ("3", True), ("4", False), ("-1", False), ("1.0", False), ("x", False)])
def test_penalties_of_numbers_are_held_against_their_range(database: Database, label: str, there: bool) -> None:
    with Reader() as reader:
        reader.feed(b"x,y\n" + b"".join(b"%d,%d\n" % (i, i % 4) for i in range(40)))
        datasets.store(database, ME, "numbers", reader.finish(), 1, None)
    penalties = {label: {"1": 5.0}}
    if there:
        assert submit(database, dataset="numbers", label="y", penalties=penalties).status == "queued"
    else:
        with pytest.raises(InvalidRequest, match="no values of 'y'"):
            submit(database, dataset="numbers", label="y", penalties=penalties)


def test_a_column_with_words_that_cannot_be_shown_is_told_of_at_once(database: Database) -> None:
    with Reader() as reader:
        reader.feed(b"x,notes,y\n" + b"".join(b"%d,%s,%d\n" % (i, b"n" * (201 if i == 7 else 200), i % 2) for i in range(40)))
        datasets.store(database, ME, "notes", reader.finish(), 1, None)
    with pytest.raises(InvalidRequest, match="dataset: the column 'notes' has words of more than 200 characters"):
        submit(database, dataset="notes", label="y")


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["yes", "", "no"], "missing in 1 rows"),
        (["yes", "yes", "yes"], "the same in every row"),
        (["1.5", "2", "3"], "are numbers with fractions, as a regression target has"),
        ([str(i) for i in range(5000)], "are very many different numbers in 5,000 rows, as a regression target has"),
        ([f"w{i}" for i in range(5000)], "5,000 different values"),
        ([str(i % 300) for i in range(600)], "are 300 different numbers in 600 rows, as a regression target has"),
        ([str(i) for i in range(30)], "are 30 different numbers in 30 rows, as a regression target has"),
        ([*(f"{i}.5" for i in range(30)), "?"], "are 30 different numbers in 31 rows, as a regression target has, and a few words"),
        (["x" * 201, "y"] * 3, "more than 200 characters"),
    ],
)
def test_labels_that_cannot_be_learnt_are_refused(database: Database, cells: list[str], said: str) -> None:
    with Reader() as reader:
        reader.feed(b"x,y\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells)).encode())
        datasets.store(database, ME, "odd", reader.finish(), 1, None)
    with pytest.raises(InvalidRequest) as caught:
        submit(database, dataset="odd", label="y")
    assert said in caught.value.detail
    assert caught.value.detail.startswith("label: ")


# What an attempt has staged


def staged(database: Database) -> jobs.Claim:
    """A job in training, of whose model some bytes are stored."""
    claim = jobs.claim(database, LEASE)
    assert claim is not None
    jobs.staging(database, claim).add([b"half", b"a", b"model"])
    return claim


def models_left(url: str) -> int:
    return int(rows(url, "SELECT count(*) FROM archives WHERE id NOT IN (SELECT archive_id FROM datasets)")[0][0])


END: dict[str, Any] = {
    "claimed by another": lambda database, claim: (lapse(database), jobs.claim(database, LEASE)),
    "cancelled": lambda database, claim: jobs.cancel(database, ME, claim.job.id),
    "failed": lambda database, claim: jobs.fail(database, claim, "it cannot be done"),
    "tried again": lambda database, claim: jobs.again(database, claim, "it was killed"),
    "released": lambda database, claim: jobs.release(database, claim),
}


@pytest.mark.parametrize("how", END)
def test_what_an_attempt_has_staged_goes_with_its_lease(database: Database, database_url: str, how: str) -> None:
    submit(database)
    claim = staged(database)
    assert models_left(database_url) == 1
    END[how](database, claim)
    assert models_left(database_url) == 0


@pytest.mark.parametrize("how", END)
def test_who_has_lost_the_lease_stages_nothing_more(database: Database, database_url: str, how: str) -> None:
    submit(database)
    claim = staged(database)
    late, anew = jobs.staging(database, claim), jobs.staging(database, claim)
    late.add([b"half", b"a", b"model"])
    END[how](database, claim)
    for write in (lambda: late.add([b"the rest"]), late.seal, lambda: anew.add([b"all of it"])):
        with pytest.raises(LeaseLost):
            write()
    assert models_left(database_url) == 0


def test_what_was_staged_goes_when_the_last_attempt_is_lost(database: Database, database_url: str) -> None:
    job = submit(database)
    for _ in range(jobs.ATTEMPTS):
        staged(database)
        lapse(database)
    assert jobs.claim(database, LEASE) is None
    assert (status(database, job.id), models_left(database_url)) == ("failed", 0)


def test_what_is_published_stays(database: Database, database_url: str) -> None:
    submit(database)
    claim = jobs.claim(database, LEASE)
    assert claim is not None
    ensemble, staging = clinic(), jobs.staging(database, claim)
    staging.add([dump(ensemble)])
    staging.seal()
    jobs.finish(database, claim, staging.id, describe(ensemble), [])
    with pytest.raises(JobOver):
        jobs.cancel(database, ME, claim.job.id)
    archives.drop_condemned(database)
    assert dump(read_ensemble(database, "small", 1)) == dump(ensemble)


def test_a_running_jobs_bytes_are_kept_however_old(database: Database, database_url: str) -> None:
    submit(database)
    staged(database)
    database.write(archives.condemn_unused)
    archives.drop_condemned(database)
    assert models_left(database_url) == 1


def test_a_new_process_on_an_sqlite_file_drops_what_the_last_one_left(database: Database, database_url: str) -> None:
    submit(database)
    staged(database)
    archives.stage(database, b"an upload that was cut off")
    jobs.release_all(database)
    assert models_left(database_url) == 1  # the job's, until it is claimed: it may still be another's on PostgreSQL
    assert jobs.claim(database, LEASE) is not None
    assert models_left(database_url) == 0
