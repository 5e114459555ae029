"""The slow obvious twin of sessions: plain dicts, prices by hand, and the rules of a step one below the other.

Money is in whole millionths, a session is a dict, its answers are a dict by feature. What a client would be told is a Reply; times are left
out, and so is why a question is asked.
"""

from typing import Any, NamedTuple

from tests.naive import deciding

OPENING = {"budget": None, "known": None, "seed": 0, "aim": None, "confidence": None, "reference": None}  # what an opening may leave out


class Reply(NamedTuple):
    """A status code, the slug of a problem or None, the body (of a problem: members of its own), and whether it says it is a replay."""

    status: int
    problem: str | None = None
    body: Any = None
    replayed: bool = False


MISSHAPEN = Reply(422, "invalid-request")
WRONG = Reply(422, "wrong-answer")
GONE = Reply(404, "session-not-found")


class Sessions:
    """All sessions of one owner with one published model."""

    def __init__(self, name: str, model: deciding.Model, frontier: dict[str, Any] | None = None) -> None:
        self.name, self.model, self.frontier = name, model, frontier
        self.sessions: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, tuple[Any, Reply]] = {}

    def open(self, body: dict[str, Any], key: str | None, id: str) -> Reply:
        """Open a session, which gets this id if it is a new one."""
        given = OPENING | body
        if wrong_money(given["budget"]) or wrong_money(given["aim"]) or None not in (given["aim"], given["confidence"]):
            return MISSHAPEN
        if key in self.keys:
            first, reply = self.keys[key]
            return reply._replace(replayed=True) if first == given else Reply(422, "idempotency-key-reused")
        if given["model"] != self.name:
            return Reply(404, "model-not-found")
        if given["aim"] is not None and self.frontier is None:
            return MISSHAPEN
        known = given["known"] or {}
        if any(
            name not in self.model.schema.names or (name in used(self.model) and wrong_value(self.model, name, known[name]))
            for name in known
        ):
            return WRONG
        session = {
            "id": id,
            "budget": None if given["budget"] is None else round(given["budget"] * 10**6),
            "spent": 0,
            "revision": 1,
            "seed": given["seed"],
            "aim": given["aim"],
            "confidence": given["confidence"],
            "stop": self.stop(given),
            "reference": given["reference"],
            "answers": {name: known_line(self.stored(name, value)) for name, value in known.items() if name in used(self.model)},
        }
        self.sessions[id] = session
        self.decide(session)
        reply = Reply(201, body=self.shown(session))
        if key is not None:
            self.keys[key] = given, reply
        return reply

    def stop(self, given: dict[str, Any]) -> tuple[float | None, float | None]:
        """(confidence, cap): what is asked for, or the operating point that it comes to."""
        if given["confidence"] is not None or self.frontier is None:
            return given["confidence"], None
        points, default = self.frontier["points"], self.frontier["default"]
        if given["aim"] is not None:
            point = max((point for point in points if point["cost"] <= given["aim"]), key=lambda point: point["cost"])
            return point["confidence"], point["cap"]
        if given["budget"] is not None:
            return min(points, key=lambda point: (point["error"], point["cost"]))["confidence"], None
        return points[default]["confidence"], points[default]["cap"]

    def answer(self, id: str, body: Any) -> Reply:
        """One answer or several: the checks in the order of the contract, then the charge, then one decision."""
        if misshapen(body):
            return MISSHAPEN
        if id not in self.sessions:
            return GONE
        session = self.sessions[id]
        stored = session["answers"]
        new = [item for item in body.get("answers", [body]) if not self.same(stored.get(item["feature"]), item)]
        if not new:
            return Reply(200, body=self.shown(session), replayed=True)
        if any(wrong_item(self.model, item) for item in new):
            return WRONG
        for item in new:
            if item["feature"] in stored and stored[item["feature"]]["status"] != "pending":
                return Reply(409, "answer-conflict", {"feature": item["feature"]})
        if session["status"] == "done":
            return Reply(409, "session-closed", {"session_status": "done"})
        costs = self.prices(stored, new)
        if session["budget"] is not None and session["spent"] + sum(costs) > session["budget"]:
            left = session["budget"] - session["spent"]
            return Reply(409, "over-budget", {"cost": sum(costs) / 10**6, "remaining": left / 10**6})
        for item, cost in zip(new, costs, strict=True):
            self.record(stored, item, cost)
        session["spent"] += sum(costs)
        session["revision"] += 1
        self.decide(session)
        return Reply(200, body=self.shown(session))

    def finish(self, id: str) -> Reply:
        if id not in self.sessions:
            return GONE
        session = self.sessions[id]
        if session["status"] != "done":
            session |= {"status": "done", "ask": None, "reason": "stopped", "revision": session["revision"] + 1}
        return Reply(200, body=self.shown(session))

    def read(self, id: str) -> Reply:
        return Reply(200, body=self.shown(self.sessions[id])) if id in self.sessions else GONE

    def delete(self, id: str) -> Reply:
        """Gone with its answers, and with the key that opened it."""
        if id not in self.sessions:
            return GONE
        del self.sessions[id]
        self.keys = {key: (body, reply) for key, (body, reply) in self.keys.items() if reply.body["id"] != id}
        return Reply(204)

    def listed(self, limit: int, cursor: str | None, status: str | None) -> Reply:
        """Newest first; ids sort by the time they were made."""
        found = [id for id in sorted(self.sessions, reverse=True) if status in (None, self.sessions[id]["status"])]
        page = [id for id in found if cursor is None or id < cursor]
        more = page[limit - 1] if len(page) > limit else None
        return Reply(200, body={"items": [self.shown(self.sessions[id]) for id in page[:limit]], "next": more})

    def prices(self, stored: dict[str, Any], items: list[dict[str, Any]]) -> list[int]:
        """What these cost one after the other, once what is stored and what comes before has entered its groups."""
        bought = {name for name, line in stored.items() if line["bought"]}
        costs = []
        for item in items:
            name, price = item["feature"], self.model.costs[item["feature"]]
            entered = price.group is not None and any(self.model.costs[other].group == price.group for other in bought)
            if item.get("status") == "unavailable" or name in bought:
                costs.append(0)
                continue
            costs.append(round((price.cost_in_group if entered and price.cost_in_group is not None else price.cost) * 10**6))
            bought.add(name)
        return costs

    def same(self, line: dict[str, Any] | None, item: dict[str, Any]) -> bool:
        """Whether an item says what is stored: the same status, or an equal number or word. True is not 1."""
        if line is None or line["status"] != item.get("status"):
            return False
        value = self.stored(item["feature"], item.get("value"))
        return line["value"] == value and isinstance(line["value"], bool) == isinstance(value, bool)

    def record(self, stored: dict[str, Any], item: dict[str, Any], cost: int) -> None:
        """What was pending keeps its place, its cost and its group; all else is a new line."""
        said = {"status": item.get("status"), "value": self.stored(item["feature"], item.get("value"))}
        if item["feature"] in stored:
            stored[item["feature"]] |= said
        else:
            stored[item["feature"]] = said | {"cost": cost, "bought": said["status"] != "unavailable", "source": "answer"}

    def stored(self, name: str, value: Any) -> Any:
        """Numbers are kept as floats, which not every whole number is."""
        number = self.model.schema[name].kind == "numeric" and isinstance(value, int) and not isinstance(value, bool)
        return float(value) if number else value

    def decide(self, session: dict[str, Any]) -> None:
        """Where the session stands with its answers."""
        verdict, *rest, label, chances, votes = deciding.decide(self.model, **situation(session))
        session["status"] = {"ask": "open", "wait": "waiting", "stop": "done"}[verdict]
        session["ask"] = tuple(rest) if verdict == "ask" else None
        session["reason"] = rest[0] if verdict == "stop" else None
        session["label"], session["chances"] = self.model.classes[label], dict(zip(self.model.classes, chances, strict=True))
        session["votes"] = dict(zip(self.model.classes, votes, strict=True))

    def shown(self, session: dict[str, Any]) -> dict[str, Any]:
        budget, spent, over = session["budget"], session["spent"], session["status"] == "done"
        return {
            "id": session["id"],
            "model": {"name": self.name, "version": 1},
            "status": session["status"],
            "revision": session["revision"],
            "reference": session["reference"],
            "seed": session["seed"],
            "ask": None if session["ask"] is None else self.question(*session["ask"]),
            "budget": None if budget is None else budget / 10**6,
            "spent": spent / 10**6,
            "remaining": None if budget is None else (budget - spent) / 10**6,
            "aim": session["aim"],
            "confidence": session["confidence"],
            "answers": [shown_line(name, line) for name, line in session["answers"].items()],
            "prediction": {
                "label": session["label"],
                "probabilities": session["chances"],
                "votes": session["votes"],
                "final": over,
                "reason": session["reason"],
            },
        }

    def question(self, name: str, cost: float) -> dict[str, Any]:
        feature = self.model.schema[name]
        return {
            "feature": name,
            "cost": cost,
            "kind": feature.kind,
            "categories": list(feature.categories) or None,
            "unit": feature.unit,
            "question": feature.question,
            "delayed": self.model.costs[name].delayed,
        }


def situation(session: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `decide` for a session."""
    answers = session["answers"]
    return {
        "answers": {name: line["value"] for name, line in answers.items() if line["status"] != "pending"},
        "budget": None if session["budget"] is None else session["budget"] / 10**6,
        "spent": session["spent"] / 10**6,
        "bought": [name for name, line in answers.items() if line["bought"]],
        "pending": [name for name, line in answers.items() if line["status"] == "pending"],
        "confidence": session["stop"][0],
        "cap": session["stop"][1],
    }


def used(model: deciding.Model) -> set[str]:
    """The features that some tree asks for."""
    return {node.feature for tree in model.trees for node in deciding.at_or_below(tree) if hasattr(node, "feature")}


def misshapen(body: Any) -> bool:
    if not isinstance(body, dict) or "answers" not in body:
        return misshapen_item(body)
    items = body["answers"]
    if set(body) != {"answers"} or not isinstance(items, list) or not items or any(map(misshapen_item, items)):
        return True
    return len({item["feature"] for item in items}) < len(items)


def misshapen_item(item: Any) -> bool:
    """An item names a feature and has either a value or a status."""
    if not isinstance(item, dict) or not set(item) <= {"feature", "value", "status"} or not isinstance(item.get("feature"), str):
        return True
    value, status = item.get("value"), item.get("status")
    if status not in (None, "pending", "unavailable") or not isinstance(value, (bool, int, float, str, type(None))):
        return True
    return item["feature"] == "" or (value is None) == (status is None)


def wrong_money(amount: Any) -> bool:
    if amount is None:
        return False
    return not isinstance(amount, (int, float)) or isinstance(amount, bool) or amount < 0 or round(amount, 6) != amount


def wrong_item(model: deciding.Model, item: dict[str, Any]) -> bool:
    return item["feature"] not in used(model) or wrong_value(model, item["feature"], item.get("value"))


def wrong_value(model: deciding.Model, name: str, value: Any) -> bool:
    """Nothing is never wrong: it is unavailable."""
    if value is None:
        return False
    feature = model.schema[name]
    if feature.kind == "numeric":
        return isinstance(value, (bool, str))
    return not any(value == category and isinstance(value, bool) == isinstance(category, bool) for category in feature.categories)


def known_line(value: Any) -> dict[str, Any]:
    return {"status": "unavailable" if value is None else None, "value": value, "cost": 0, "bought": False, "source": "known"}


def shown_line(name: str, line: dict[str, Any]) -> dict[str, Any]:
    said = {"value": line["value"]} if line["status"] is None else {"status": line["status"]}
    return {"feature": name, **said, "cost": line["cost"] / 10**6, "source": line["source"]}
