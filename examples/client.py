"""A program that holds a session with the heart example over HTTP: each question with its price, and one answer that comes in later.

make run                      # in another terminal
python -m examples.client     # FRUGAL_URL and FRUGAL_KEY name another server and a key
"""

import os
from typing import Any

from frugal.client import LOCAL, PENDING, UNAVAILABLE, Client, ClientError, Value

PATIENT: dict[str, Value] = {
    "age": 50,
    "sex": "male",
    "chest_pain": "none",
    "resting_bp": 150,
    "cholesterol": 243,
    "fasting_sugar": "normal",
    "resting_ecg": "hypertrophy",
}  # nothing is known of exercise and scans: those cannot be had
LATER = "resting_bp"  # being measured while the session goes on


def acquire(question: dict[str, Any]) -> Value:
    name = question["feature"]
    value = PENDING if name == LATER else PATIENT.get(name, UNAVAILABLE)
    said = {PENDING: "(comes later)", UNAVAILABLE: "(cannot be had)"}.get(value, value)
    print(f"{question['question'] or name:64} {question['cost']:>7.2f}   {said}")
    return value


def collect(pending: list[str]) -> dict[str, Value]:
    """Called when the session can only wait: a program would wait for its laboratory here."""
    came = {name: PATIENT[name] for name in pending}
    print(f"{'    came in':72}   {came}")
    return came


def main() -> None:
    with Client(os.environ.get("FRUGAL_URL", LOCAL), os.environ.get("FRUGAL_KEY")) as client:
        session = client.run("heart", acquire, collect=collect, budget=60, reference="examples/client.py")
    said = session["prediction"]
    print(f"\n{said['label']} ({100 * said['probabilities'][said['label']]:.0f} %), reason: {said['reason']}")
    print(f"spent {session['spent']:.2f} of {session['budget']:.2f}; session {session['id']}, version {session['model']['version']}")


if __name__ == "__main__":
    try:
        main()
    except ClientError as error:
        raise SystemExit(f"{error}\nIs a server there? Start one with: make run") from None
