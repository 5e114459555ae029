"""How much memory large forests take to train and to serve, and how large their archives are; each step in a process of its own.

    python benchmarks/memory.py [--data ../shared/data] [--trees 1000] [--only noisy covertype]

Two forests: 1,000 trees on a made-up table of 25,000 rows x 16 numbers and 25 classes whose labels are mostly noise, so that trees are
large; and 40 full trees on covertype (581,012 rows, 7 classes). Bars: the first trains and is served within 4 GiB of peak memory (RSS), the
archive of the second takes at most 120 MB. Beside them what dense counts of eight bytes would take. The last line is JSON.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from frugal.models import BudgetForestClassifier, acquire, dump, load

GIB, MB = 2**30, 10**6


def noisy(data: Path) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25_000, 16)).astype(np.float32)
    y = (np.abs(X[:, :3]).sum(axis=1) * 5).astype(int) % 25
    return X, np.where(rng.random(len(y)) < 0.8, rng.integers(0, 25, len(y)), y)


def covertype(data: Path) -> tuple[np.ndarray, np.ndarray]:
    import pandas as pd

    table = pd.read_csv(data / "covertype.csv.gz")
    return table.iloc[:, :-1].to_numpy(np.float32), table.iloc[:, -1].to_numpy()


TABLES = {"noisy": (noisy, 1000), "covertype": (covertype, 40)}


def train(name: str, data: Path, trees: int, path: Path) -> dict[str, float]:
    X, y = TABLES[name][0](data)
    start = time.perf_counter()
    ensemble = BudgetForestClassifier(max_trees=trees, random_state=0, n_jobs=2).fit(X, y).ensemble_
    dump(ensemble, path)
    nodes, entries = len(ensemble.flat.feature), len(ensemble.flat.values)
    return {"seconds": time.perf_counter() - start, "nodes": nodes, "entries": entries, "classes": len(ensemble.classes)}


def serve(name: str, data: Path, trees: int, path: Path) -> dict[str, float]:
    rows = TABLES[name][0](data)[0][:2000].astype(float)
    start = time.perf_counter()
    ensemble = load(path)
    loaded = time.perf_counter() - start
    acquire(ensemble, rows, n_jobs=2)
    return {"load_seconds": loaded, "acquire_us": (time.perf_counter() - start - loaded) * 1e6 / len(rows)}


STEPS = {"train": train, "serve": serve}


def in_a_child(step: str, name: str, options: argparse.Namespace, path: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--step", step, "--only", name, "--data", str(options.data), "--path", str(path)]
    if options.trees and name == "noisy":
        command += ["--trees", str(options.trees)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(said.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--trees", type=int, help="of the made-up table")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--path", type=Path, default=Path("/tmp"))
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        name = options.only[0]
        done = STEPS[options.step](name, options.data, options.trees or TABLES[name][1], options.path)
        print(json.dumps(done | {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
        return
    report: dict[str, object] = {}
    for name in options.only:
        path = options.path / f"frugal-memory-{name}.safetensors"
        grown = in_a_child("train", name, options, path)
        served = in_a_child("serve", name, options, path)
        size = path.stat().st_size
        path.unlink()
        dense = grown["nodes"] * grown["classes"] * 8
        print(f"{name}: {grown['nodes']:,.0f} nodes, {grown['entries']:,.0f} values, trained in {grown['seconds']:.0f} s")
        print(f"    peak memory {grown['peak'] / GIB:.2f} GiB to train, {served['peak'] / GIB:.2f} GiB to serve")
        print(f"    archive {size / MB:.0f} MB, loaded in {served['load_seconds']:.1f} s; dense counts alone are {dense / MB:,.0f} MB")
        report |= {
            f"{name} nodes": grown["nodes"],
            f"{name} train_gib": round(grown["peak"] / GIB, 2),
            f"{name} serve_gib": round(served["peak"] / GIB, 2),
            f"{name} archive_mb": round(size / MB, 1),
        }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
