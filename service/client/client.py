"""The client itself: every call of one server, with one key."""

from frugal.service.client.admin import Models
from frugal.service.client.sessions import Sessions
from frugal.service.client.training import Training


class Client(Sessions, Models, Training):
    """Calls of one server, with one key. What can be sent twice without harm is sent again when a reply is lost.

    >>> with Client("http://127.0.0.1:8000") as client:  # doctest: +SKIP
    ...     session = client.run("heart", lambda question: input(question["question"]), budget=60)
    ...     print(session["prediction"]["label"], session["spent"])
    """
