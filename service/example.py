"""The heart example: its model, published where there is none, and a session with it as curl lines. `make example` trains it anew."""

import json
from pathlib import Path

from frugal.models import Ask, Ensemble, decide
from frugal.models.frontier import stop_at
from frugal.models.schema import Value
from frugal.service.errors import ModelNotFound
from frugal.service.registry.versions import publish, read_ensemble, resolve
from frugal.service.store.audit import Actor
from frugal.service.store.db import Database

NAME = "heart"
FOLDERS = (Path(__file__).parents[2] / "examples" / "heart", Path("examples") / "heart")
MODEL = "heart.safetensors"
BUDGET = 60


def publish_example(database: Database) -> str:
    """Publish the heart example unless there is a model of that name; says what was done."""
    try:
        name, number = resolve(database, NAME)
        return f"model {name}:{number} is there already"
    except ModelNotFound:
        about = publish(database, NAME, example_archive(), Actor("local"))
        found = about["metrics"]
        return f"published {NAME}:{about['version']}: error {found['error']:.3f}, mean cost {found['mean_cost']:.2f} on rows it never saw"


def example_archive() -> bytes:
    """The model file that comes with the checkout."""
    folder = next((folder for folder in FOLDERS if (folder / MODEL).is_file()), None)
    if folder is None:
        raise ValueError(f"the heart example is not here: run this in a checkout, where there is examples/heart/{MODEL}")
    return (folder / MODEL).read_bytes()


def curl_lines(database: Database, url: str) -> list[str]:
    """Three lines to copy that hold a whole session with the heart example; none where it is not published."""
    try:
        ensemble = read_ensemble(database, *resolve(database, NAME))
    except ModelNotFound:
        return []
    post = "curl -s -H 'Content-Type: application/json'"
    answers = [{"feature": name, "value": value} for name, value in _patient(ensemble).items()]
    opening = json.dumps({"model": NAME, "budget": BUDGET})
    return [
        f"ID=$({post} {url}/v1/sessions -d '{opening}' | tee /dev/stderr | cut -d'\"' -f4)",
        f"{post} {url}/v1/sessions/$ID/answers -d '{json.dumps({'answers': answers})}'",
        f"curl -s -X POST {url}/v1/sessions/$ID/finish",
    ]


def _patient(ensemble: Ensemble) -> dict[str, Value]:
    """The answers of somebody of middle age and common findings, as far as they are asked for."""
    answers: dict[str, Value] = {}
    confidence, cap = stop_at(ensemble.frontier, BUDGET, None, None)
    while isinstance(asked := decide(ensemble, answers, BUDGET, ensemble.costs.total(answers), confidence=confidence, cap=cap), Ask):
        feature = ensemble.schema[asked.feature]
        answers[feature.name] = feature.categories[0] if feature.categories else COMMON.get(feature.name, 1)
    return answers


COMMON: dict[str, float] = {"age": 63, "resting_bp": 145, "cholesterol": 233, "max_heart_rate": 150, "st_depression": 2.3, "vessels": 0}
