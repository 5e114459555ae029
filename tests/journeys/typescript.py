"""A client in TypeScript from our page: openapi-typescript makes the types, tsc checks a session against them, node holds it.

make test-typescript        needs node and npm, and a registry to fetch openapi-typescript, openapi-fetch and typescript from
"""

import json
import subprocess
import tempfile
from pathlib import Path

import httpx

from frugal.service.app import create
from frugal.service.config import Settings
from tests.journeys.processes import serving

PACKAGES = ["openapi-typescript@7", "openapi-fetch@0", "typescript@5"]
SESSION = """
import createClient from "openapi-fetch";
import type { paths } from "./page";

const client = createClient<paths>({ baseUrl: process.argv[2] });
const opened = await client.POST("/v1/sessions", { body: { model: "heart", budget: 60, known: { age: 63 }, seed: 0 } });
if (opened.error) throw new Error(opened.error.detail);
let session = opened.data;
while (session.ask) {
  const value = session.ask.categories ? String(session.ask.categories[0]) : 140;
  const answered = await client.POST("/v1/sessions/{id}/answers", {
    params: { path: { id: session.id } },
    body: { feature: session.ask.feature, value },
  });
  if (answered.error) throw new Error(answered.error.detail);
  session = answered.data;
}
const reason: "leaf" | "decided" | "confident" | "budget" | "exhausted" | "aim" | "stopped" | "expired" | null = session.prediction.reason;
console.log(JSON.stringify({ label: session.prediction.label, reason, spent: session.spent }));
"""
TSC = [
    "npx",
    "tsc",
    "--strict",
    "--target",
    "es2022",
    "--module",
    "es2022",
    "--moduleResolution",
    "bundler",
    "--types",
    "node",
    "session.ts",
]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "package.json").write_text('{"private": true, "type": "module"}')
        (folder / "openapi.json").write_text(json.dumps(create(Settings()).openapi()))
        (folder / "session.ts").write_text(SESSION)
        run(["npm", "install", "--silent", "--no-audit", "--no-fund", *PACKAGES, "@types/node@22"], folder)
        run(["npx", "openapi-typescript", "openapi.json", "--output", "page.d.ts"], folder)
        run(TSC, folder)
        with serving(folder, f"sqlite:///{folder / 'frugal.db'}", "--example") as server:
            said = json.loads(run(["node", "session.js", server.url], folder))
            spent = httpx.get(f"{server.url}/v1/sessions").json()["items"][0]["spent"]
    assert said["reason"] in ("leaf", "decided", "confident", "budget"), said
    assert 0 < said["spent"] == spent <= 60, said
    print(f"TypeScript holds a session: {said}")


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


if __name__ == "__main__":
    main()
