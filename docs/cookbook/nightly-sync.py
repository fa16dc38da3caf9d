# Keeps a copy of participants, tasks and payments in mirror.json.
# Run it again to read what has changed since.
import json
import os
import sys
import time
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

BASE = os.environ["MUSTER_URL"] + "/public/v1"
FILE = "mirror.json"
# Payments need a key whose owner has the Finance permission to read.
# After a change here, delete mirror.json.
LISTS = {"participant": "/participants", "task": "/tasks", "payment": "/payments"}


def get(path, query=()):
    """Returns None if there is no such record."""
    request = Request(
        f"{BASE}{path}?{urlencode(query)}",
        headers={"Authorization": f"Bearer {os.environ['MUSTER_API_KEY']}"},
    )
    while True:
        try:
            with urlopen(request, timeout=60) as response:
                return json.load(response)
        except HTTPError as error:
            if error.code == 404:
                return None
            seconds = int(error.headers.get("Retry-After") or 0)
            if error.code not in (429, 503) or not seconds:
                sys.exit(f"{error.code}: {error.read().decode()}")
            time.sleep(seconds)


def walk(path, query):
    """All pages of a list."""
    query = {**query, "page[size]": 100}
    while True:
        page = get(path, query)
        yield page
        if page["meta"]["next_cursor"] is None:
            return
        query["page[after]"] = page["meta"]["next_cursor"]


def newest_event():
    events = get("/events", {"sort": "-created_at", "page[size]": 1})["data"]
    return events[0]["id"] if events else None


try:
    with open(FILE) as file:
        mirror = json.load(file)
except FileNotFoundError:
    mirror = {"from": None, "newest_event": None, "records": {}}

since = mirror["from"]
# If the newest event that the previous run saw is gone, the service may have deleted later ones,
# too: they are too old, or its operator restored a backup. Then read everything.
if mirror["newest_event"] is None or get(f"/events/{mirror['newest_event']}") is None:
    since = None
# A run that reads everything begins with an empty copy, so deleted records are not in the new copy.
records = mirror["records"] if since else {name: {} for name in LISTS}
newest_at_start = newest_event()

metas = []
read = deleted = 0
for name, path in LISTS.items():
    for page in walk(path, {"filter[updated_from]": since} if since else {}):
        metas.append(page["meta"])
        for record in page["data"]:
            records[name][record["id"]] = record
            read += 1

if since:
    types = ",".join(f"{name}.deleted" for name in LISTS)
    for page in walk("/events", {"filter[event_type]": types, "filter[created_from]": since}):
        for event in page["data"]:
            resource = event["resource"]
            if records[resource["type"]].pop(resource["id"], None):
                deleted += 1

if newest_at_start and get(f"/events/{newest_at_start}") is None:
    sys.exit("A backup was restored during this run. Run this again.")
mirror = {
    # The next run continues from the time in the first response of this run.
    # If it is null, the old time stays.
    "from": metas[0]["complete_until"] or since,
    "newest_event": newest_event(),
    "records": records,
}
# The file has either the old state or the new one, even if the program is stopped.
with open(FILE + ".new", "w") as file:
    json.dump(mirror, file)
os.replace(FILE + ".new", FILE)
total = sum(len(copies) for copies in records.values())
print(f"{read} read, {deleted} deleted, {total} in the copy.")
