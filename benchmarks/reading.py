"""Reading CSV: ours against polars and pyarrow on the same file, in the same run on the same threads.

    python benchmarks/reading.py [--data ../shared/data/covertype.csv.gz] [--rounds 7] [--rows 300000]

Three tables: the one of --data, one of words, one of numbers with 17 digits. polars and pyarrow guess a column's type from its first rows.
"pyarrow, our types" is what stands to be taken instead of ours: it decides what a column is as docs/data.md has it (one word anywhere makes
it words, and 07 is not 7), which takes a pass over the file as texts and a second one with the types. What each makes of wrong and odd
input is printed too. The last line is JSON.
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

import numpy as np
import polars
import pyarrow
import pyarrow.csv

from benchmarks.reading_parts import by_arrow
from frugal.service.tables import Columns, Reader, pack, read_file
from frugal.service.warming import PARTS

THREADS = 2
SHOWN = {
    "polars": "polars",
    "pyarrow": "pyarrow",
    "ours by pyarrow": "pyarrow, our types",
    "read": "ours",
    "feed": "ours, fed with 64 KiB",
    "pack": "ours, fed and packed",
}
PEAK = """
import os, re, sys
def most(): return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])  # not ru_maxrss: that starts at the parent's
os.environ["POLARS_MAX_THREADS"] = "2"
which, path, small = sys.argv[1:]
if which == "polars":
    import polars; read = polars.read_csv
elif which == "pyarrow":
    import pyarrow, pyarrow.csv; pyarrow.set_cpu_count(2); read = pyarrow.csv.read_csv
elif which == "ours by pyarrow":
    import pyarrow; pyarrow.set_cpu_count(2)
    from benchmarks.reading_parts.by_arrow import read
else:
    from frugal.service.tables import pack, read_file
    read = read_file if which != "pack" else lambda path: sum(map(len, pack(read_file(path))))
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
    parser.add_argument("--rows", type=int, default=300_000, help="of the two tables that are made")
    options = parser.parse_args()
    pyarrow.set_cpu_count(THREADS)
    PARTS.warm_up()
    report = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        opened = gzip.open if options.data.endswith(".gz") else open
        with opened(options.data, "rb") as source, path.open("wb") as target:
            shutil.copyfileobj(source, target)
        report["given"] = compare(str(path), options.rounds)
        for name, make in (("words", words), ("17 digits", digits)):
            path.write_text(make(options.rows))
            report[name] = compare(str(path), options.rounds)
    judge()
    print(json.dumps(report))


def words(rows: int) -> str:
    """Ten columns of 3 to 2,000 different words."""
    rng = np.random.default_rng(0)
    columns = [np.array([f"{'abcdefghij'[c]}{code:x} of {many}" for code in range(many)])[rng.integers(0, many, rows)]
               for c, many in enumerate((3, 5, 8, 12, 20, 40, 100, 300, 1000, 2000))]  # fmt: skip
    return "\n".join([",".join("abcdefghij"), *map(",".join, zip(*columns, strict=True))]) + "\n"


def digits(rows: int) -> str:
    """Ten columns of numbers as Python writes them, with all the digits that they need."""
    numbers = np.random.default_rng(0).standard_normal((rows, 10))
    return "\n".join([",".join("abcdefghij"), *(",".join(map(repr, row)) for row in numbers.tolist())]) + "\n"


def compare(path: str, rounds: int) -> dict[str, float]:
    size = os.path.getsize(path)
    table = read_file(path)
    columns = sum(column.values.nbytes for column in table.by_name.values())
    print(f"{table.shape[0]:,} rows, {table.shape[1]} columns, {size / 1e6:.1f} MB of CSV, {columns / 1e6:.1f} MB of columns")
    del table
    ways = {
        "polars": lambda: polars.read_csv(path),
        "pyarrow": lambda: pyarrow.csv.read_csv(path),
        "ours by pyarrow": lambda: by_arrow.read(path),
        "read": lambda: read_file(path),
        "feed": lambda: fed(path),
        "pack": lambda: packed(fed(path)),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, work in ways.items():
            taken[name].append(seconds(work))
    medians = {name: statistics.median(times[1:]) for name, times in taken.items()}
    target = min(medians["polars"], medians["pyarrow"])
    report: dict[str, float] = {}
    for name, median in medians.items():
        most = peak(name, path)
        print(
            f"{SHOWN[name]:24} {median:.3f} s, {size / median / 1e6:4.0f} MB/s, {target / median:.2f} of the faster of polars and pyarrow; "
            f"peak {most / 1e6:5.0f} MB, {most / columns:.1f} of the columns"
        )
        report |= {f"speed {name}": round(target / median, 2), f"peak of columns {name}": round(most / columns, 2)}
    return report


def judge() -> None:
    """What each makes of input that is wrong or odd."""
    odd = {
        "07 is not 7": "a,b\n07,1\n7,2\nx,3\n",
        "a word after 200,000 numbers": "a,b\n" + "1,2\n" * 200_000 + "x,2\n",
        "a row with a cell too many, row 4": "a,b\n1,2\n3,4\n5,6,7\n",
        "text after a closing quote, row 3": 'a,b\n1,2\n"3"x,4\n',
        "a quote that is never closed, row 3": 'a,b\n1,2\n"3,4\n5,6\n',
        "a byte of zero, row 2": "a,b\n1\0,2\n",
        "a carriage return alone": "a,b\r1,2\r",
    }
    readers = {"polars": polars.read_csv, "pyarrow": pyarrow.csv.read_csv, "ours by pyarrow": by_arrow.read, "read": read_file}
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        for what, text in odd.items():
            print(f"{what}:")
            Path(file.name).write_bytes(text.encode())
            for which, read in readers.items():
                try:
                    found = read(file.name)
                    said = (
                        by_arrow.shown(found)
                        if not isinstance(found, Columns)
                        else [str(found[name].tolist(slice(3))) for name in found.columns]
                    )
                except Exception as error:
                    said = f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
                print(f"    {SHOWN[which]:24} {said}")


if __name__ == "__main__":
    main()
