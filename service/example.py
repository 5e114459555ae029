"""The heart example: its model, trained and published where there is none, and a session with it as curl lines."""

import json
import sys
from pathlib import Path

from models import Ask, CostModel, Ensemble, decide
from models.schema import Value
from service.errors import ModelNotFound
from service.reading import read_file
from service.registry.versions import publish_ensemble, read_ensemble, resolve
from service.store.audit import Actor
from service.store.db import Database
from service.training.pricing import from_model
from service.training.run import train
from service.training.spec import Spec

NAME = "heart"
FOLDERS = (Path(__file__).parent.parent / "examples" / "heart", Path("examples") / "heart")


def publish_example(database: Database) -> str:
    """Train and publish the heart example unless there is a model of that name; says what was done."""
    try:
        name, number = resolve(database, NAME)
        return f"model {name}:{number} is there already"
    except ModelNotFound:
        print("frugal: growing the heart example (on a new machine the kernels are compiled first, about a minute)", file=sys.stderr)
        about = publish_ensemble(database, NAME, train_example(), Actor("local"))
        found = about["metrics"]
        return f"published {NAME}:{about['version']}: error {found['error']:.3f}, mean cost {found['mean_cost']:.2f} on rows it never saw"


def train_example() -> Ensemble:
    folder = next((folder for folder in FOLDERS if (folder / "heart.csv").is_file()), None)
    if folder is None:
        raise ValueError("the heart example is not here: run this in a checkout, where there is examples/heart")
    spec = Spec(
        dataset=NAME,
        label="disease",
        learner="budget-forest",
        params={"alpha": [0, 2, 4, 8]},
        budget=60,
        costs=from_model(CostModel.from_csv(folder / "costs.csv")),
    )
    return train(read_file(folder / "heart.csv"), spec).ensemble


def curl_lines(database: Database, url: str) -> list[str]:
    """Three lines to copy that hold a whole session with the heart example; none where it is not published."""
    try:
        ensemble = read_ensemble(database, *resolve(database, NAME))
    except ModelNotFound:
        return []
    post = "curl -s -H 'Content-Type: application/json'"
    answers = [{"feature": name, "value": value} for name, value in _patient(ensemble).items()]
    opening = json.dumps({"model": NAME, "budget": 60})
    return [
        f"ID=$({post} {url}/v1/sessions -d '{opening}' | tee /dev/stderr | cut -d'\"' -f4)",
        f"{post} {url}/v1/sessions/$ID/answers -d '{json.dumps({'answers': answers})}'",
        f"curl -s -X POST {url}/v1/sessions/$ID/finish",
    ]


def _patient(ensemble: Ensemble) -> dict[str, Value]:
    """The answers of somebody of middle age and common findings, as far as they are asked for."""
    answers: dict[str, Value] = {}
    while isinstance(asked := decide(ensemble, answers, 60, ensemble.costs.total(answers)), Ask):
        feature = ensemble.schema[asked.feature]
        answers[feature.name] = feature.categories[0] if feature.categories else COMMON.get(feature.name, 1)
    return answers


COMMON: dict[str, float] = {"age": 63, "resting_bp": 145, "cholesterol": 233, "max_heart_rate": 150, "st_depression": 2.3, "vessels": 0}
