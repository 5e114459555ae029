"""The model of the heart example, trained anew: `make example`. One model for every budget.

python -m examples.heart_model
"""

from pathlib import Path

from frugal import CostModel, Ensemble, dump
from frugal.service.tables import read_file
from frugal.service.training.pricing import from_model
from frugal.service.training.run import train
from frugal.service.training.spec import Spec

FOLDER = Path(__file__).parent / "heart"
MODEL = FOLDER / "heart.safetensors"


def trained() -> Ensemble:
    spec = Spec(
        dataset="heart",
        label="disease",
        learner="frontier",
        costs=from_model(CostModel.from_csv(FOLDER / "costs.csv")),
    )
    return train(read_file(FOLDER / "heart.csv"), spec).ensemble


def main() -> None:
    before = MODEL.read_bytes() if MODEL.exists() else b""
    dump(trained(), MODEL)
    print(f"{MODEL.relative_to(Path.cwd())} {'is as it was' if MODEL.read_bytes() == before else 'has changed: commit it'}")


if __name__ == "__main__":
    main()
