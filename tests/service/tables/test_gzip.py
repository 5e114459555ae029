"""gzipped CSV: whole, cut off, damaged, in several members, and unpacking to more than is allowed."""

import gzip
import tracemalloc
import zlib

import pytest

from frugal.service.tables import Limits, Reader, Rejected, gzips

CSV = b"a,b\n" + b"".join(b"%d,w%d\n" % (i, i % 7) for i in range(5000))


def read(data: bytes, size: int = 1 << 20, limits: Limits | None = None):
    with Reader(limits or Limits()) as reader:
        for start in range(0, len(data), size):
            reader.feed(data[start : start + size])
        return reader.finish()


@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_gzip_is_read_in_pieces_of_any_size(size):
    table = read(gzip.compress(CSV), size)
    assert table["a"].tolist() == list(range(5000))


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_members_one_after_the_other_are_one_file(size):
    data = gzip.compress(CSV[:1]) + gzip.compress(CSV[1:2000]) + gzip.compress(b"") + gzip.compress(CSV[2000:]) + bytes(100)
    assert len(read(data, size)) == 5000


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(CSV, mtime=0)[:-1], "cut off"),
        (gzip.compress(CSV, mtime=0)[:500], "cut off"),
        (b"\x1f\x8b\x08\x00", "cut off"),
        (gzip.compress(CSV, mtime=0) + b"\x1f", "cut off"),
        (gzip.compress(CSV, mtime=0) + b"more", "behind the end"),
        (gzip.compress(CSV, mtime=0)[:-6] + b"\0\0\0\0\0\0", "damaged"),
        (gzip.compress(CSV, mtime=0)[:300] + bytes(300) + gzip.compress(CSV, mtime=0)[600:], "damaged"),
        (b"\x1f\x8bnot gzip", "damaged"),
        (gzip.compress(gzip.compress(CSV, mtime=0), mtime=0), "gzip file that holds a gzip"),
        (gzip.compress(b"PAR1" + bytes(10), mtime=0), "gzip file that holds a gzip or Parquet"),
        (gzip.compress(b"", mtime=0), "empty"),
    ],
    ids=lambda part: part if isinstance(part, str) else "bytes",  # they hold the time, and differ between the processes of a test run
)
def test_what_is_wrong_with_a_gzip_file_is_said(data, words):
    for size in (3, 1 << 20):
        with pytest.raises(Rejected, match=words):
            read(data, size)


def test_thousands_of_empty_members_are_refused_and_of_full_ones_are_not():
    with pytest.raises(Rejected, match="members") as caught:
        read(gzip.compress(CSV) + gzip.compress(b"") * 200_000)
    assert caught.value.limit == gzips.MOST_MEMBERS
    full = gzip.compress(b"1,w\n" * 300, 1)
    assert len(read(gzip.compress(b"a,b\n") + full * (gzips.MOST_MEMBERS + 500))) == 300 * (gzips.MOST_MEMBERS + 500)


def test_a_bomb_is_refused_at_the_limit_in_little_memory():
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = packer.compress(b"a,b\n1,2\n") + b"".join(packer.compress(b"1,2\n" * 250_000) for _ in range(200)) + packer.flush()
    assert len(bomb) < 1_000_000
    tracemalloc.start()
    with pytest.raises(Rejected) as caught:
        read(bomb, limits=Limits(bytes=20_000_000))
    assert (caught.value.limit, caught.value.too_large) == (20_000_000, True)
    assert tracemalloc.get_traced_memory()[1] < 80e6
    tracemalloc.stop()
