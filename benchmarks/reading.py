"""Reading a CSV table, and packing it: against polars and pyarrow reading the same file, in the same run on the same threads.

    python benchmarks/reading.py [--data ../shared/data/covertype.csv.gz] [--rounds 7]

Bars: reading and packing at least half as fast as the faster of the two; peak memory beyond that of a fresh process at most 6 times the
columns' own size. The last line is JSON.
"""

import argparse
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["POLARS_MAX_THREADS"] = "2"  # read when polars is imported
sys.path.insert(0, str(Path(__file__).parent.parent))

import polars
import pyarrow
import pyarrow.csv

from frugal.models import warm_up
from frugal.service.tables import Columns, Reader, pack, read_file

THREADS = 2
PEAK = """
import os, re, sys
def most(): return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])  # not ru_maxrss: that starts at the parent's
os.environ["POLARS_MAX_THREADS"] = "2"
which, path, small = sys.argv[1:]
if which == "polars":
    import polars; read = polars.read_csv
elif which == "pyarrow":
    import pyarrow, pyarrow.csv; pyarrow.set_cpu_count(2); read = pyarrow.csv.read_csv
else:
    from frugal.service.tables import pack, read_file
    read = read_file if which == "read" else lambda path: sum(map(len, pack(read_file(path))))
read(small)
before = most()
kept = read(path)
print((most() - before) * 1024)
"""


def seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def packed(table: Columns) -> int:
    return sum(map(len, pack(table)))


def fed(path: str) -> Columns:
    """As a server gets it: in pieces of 64 KiB."""
    with Reader() as reader, open(path, "rb") as file:
        while part := file.read(65_536):
            reader.feed(part)
        return reader.finish()


def peak(which: str, path: str) -> int:
    """Bytes beyond what the process had after it read a small table."""
    with tempfile.NamedTemporaryFile(suffix=".csv") as small, open(path, "rb") as file:
        small.writelines(file.readline() for _ in range(1000))
        small.flush()
        command = [sys.executable, "-c", PEAK, which, path, small.name]
        root = str(Path(__file__).parent.parent)
        return int(subprocess.run(command, capture_output=True, text=True, check=True, cwd=root).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="../shared/data/covertype.csv.gz")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    pyarrow.set_cpu_count(THREADS)
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "table.csv")
        opened = gzip.open if options.data.endswith(".gz") else open
        with opened(options.data, "rb") as source, open(path, "wb") as target:
            shutil.copyfileobj(source, target)
        print(json.dumps(compare(path, options.rounds)))


def compare(path: str, rounds: int) -> dict[str, float]:
    size = os.path.getsize(path)
    table = read_file(path)
    small, columns = packed(table), sum(column.values.nbytes for column in table.by_name.values())
    print(f"{table.shape[0]:,} rows, {table.shape[1]} columns, {size / 1e6:.1f} MB of CSV, {small / 1e6:.1f} MB packed")
    ways = {
        "polars": lambda: polars.read_csv(path),
        "pyarrow": lambda: pyarrow.csv.read_csv(path),
        "read": lambda: read_file(path),
        "read and pack": lambda: packed(read_file(path)),
        "feed 64 KiB and pack": lambda: packed(fed(path)),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, work in ways.items():
            taken[name].append(seconds(work))
    medians = {name: statistics.median(times[1:]) for name, times in taken.items()}
    target = min(medians["polars"], medians["pyarrow"])
    report: dict[str, float] = {"bytes": size, "packed_bytes": small}
    for name, median in medians.items():
        print(f"{name:22} {median:.3f} s, {size / median / 1e6:5.0f} MB/s, {target / median:.2f} times the faster of polars and pyarrow")
        report[f"speed {name}"] = round(target / median, 2)
    wide = 8 * table.shape[0] * table.shape[1]
    del table
    for name, which in (("polars", "polars"), ("pyarrow", "pyarrow"), ("read", "read"), ("read and pack", "pack")):
        most = peak(which, path)
        print(
            f"{name:22} peak {most / 1e6:5.0f} MB more: {most / columns:.2f} of the columns' own size, {most / wide:.2f} of their size "
            f"as floats, {most / small:.1f} of the packed size"
        )
        report |= {f"peak_of_columns {name}": round(most / columns, 2), f"peak_of_packed {name}": round(most / small, 1)}
    return report


if __name__ == "__main__":
    main()
