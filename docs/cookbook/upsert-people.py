# Creates or updates a participant for each entry of people.json, by `external_id`.
import json
import os
import sys
import time
import uuid
from urllib.error import HTTPError
from urllib.request import Request, urlopen

BASE = os.environ["MUSTER_URL"] + "/public/v1"
MAX_ITEMS = 100


def post(path, body):
    data = json.dumps(body).encode()
    headers = {
        "Authorization": f"Bearer {os.environ['MUSTER_API_KEY']}",
        "Content-Type": "application/json",
        # The repeats of a batch have the same key, so nothing is done twice.
        "Idempotency-Key": str(uuid.uuid4()),
    }
    while True:
        try:
            with urlopen(Request(BASE + path, method="POST", headers=headers, data=data)) as response:
                return json.load(response)
        except HTTPError as error:
            seconds = int(error.headers.get("Retry-After") or 0)
            if error.code not in (429, 503) or not seconds:
                sys.exit(f"{error.code}: {error.read().decode()}")
            time.sleep(seconds)


with open("people.json") as file:
    people = json.load(file)
created = updated = refused = 0
for start in range(0, len(people), MAX_ITEMS):
    part = people[start : start + MAX_ITEMS]
    body = {"items": [{"action": "upsert", "data": data} for data in part]}
    for person, result in zip(part, post("/participants/batch", body)["results"]):
        if result["status"] == 201:
            created += 1
        elif result["status"] == 200:
            updated += 1
        else:
            refused += 1
            reason = result.get("errors") or result["message"]
            print(f"{person['external_id']}: {reason}", file=sys.stderr)
print(f"{created} created, {updated} updated, {refused} refused.")
sys.exit(1 if refused else 0)
