# Keeps a copy of all participants in mirror.json. Run it again to read what has changed since.
import json
import os
import sys
import time
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

BASE = os.environ["MUSTER_URL"] + "/public/v1"
FILE = "mirror.json"


def get(path, query):
    request = Request(
        f"{BASE}{path}?{urlencode(query)}",
        headers={"Authorization": f"Bearer {os.environ['MUSTER_API_KEY']}"},
    )
    while True:
        try:
            with urlopen(request) as response:
                return json.load(response)
        except HTTPError as error:
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


try:
    with open(FILE) as file:
        mirror = json.load(file)
except FileNotFoundError:
    mirror = {"until": None, "records": {}}
since, records = mirror["until"], mirror["records"]

until = None
changed = 0
for page in walk("/participants", {} if since is None else {"filter[updated_from]": since}):
    # The next run continues from here: no change before this time can appear later.
    until = until or page["meta"]["complete_until"]
    for record in page["data"]:
        records[record["id"]] = record
        changed += 1

deleted = 0
if since is not None:
    query = {"filter[event_type]": "participant.deleted", "filter[created_from]": since}
    for page in walk("/events", query):
        for event in page["data"]:
            if records.pop(event["resource"]["id"], None):
                deleted += 1

# The file has either the old state or the new one, even if the program is stopped.
with open(FILE + ".new", "w") as file:
    json.dump({"until": until, "records": records}, file)
os.replace(FILE + ".new", FILE)
print(f"{changed} read, {deleted} deleted, {len(records)} in the copy.")
