"""A client in Python: sessions, decisions, models, training and the admin's calls. Needs httpx alone; docs/client.md has it by task.

problems    what keeps a call from its answer
wire        sending, sending again, pages
sessions    sessions from beginning to end or step by step, decisions with nothing kept
models      models, keys, the log
training    data sets, learners, jobs
uploading   a table as it is sent
events      what happens to a job, as it is heard
"""

from frugal.service.client.client import Client
from frugal.service.client.problems import ClientError, Json, Problem, Unreachable
from frugal.service.client.sessions import PENDING, UNAVAILABLE, Acquire, Collect, Missing, Value
from frugal.service.client.wire import LOCAL

__all__ = [
    "LOCAL",
    "PENDING",
    "UNAVAILABLE",
    "Acquire",
    "Client",
    "ClientError",
    "Collect",
    "Json",
    "Missing",
    "Problem",
    "Unreachable",
    "Value",
]
