# Makes the webhooks of the account those of webhooks.json, compared by URL. Webhooks that are not in
# the file are deleted. Prints the signing secret of each new webhook: nothing shows it again.
import json
import os
import sys
import time
import uuid
from urllib.error import HTTPError
from urllib.request import Request, urlopen

BASE = os.environ["MUSTER_URL"] + "/public/v1"


def call(method, path, body=None):
    headers = {
        "Authorization": f"Bearer {os.environ['MUSTER_API_KEY']}",
        "Content-Type": "application/json",
    }
    if method == "POST":
        headers["Idempotency-Key"] = str(uuid.uuid4())
    data = None if body is None else json.dumps(body).encode()
    while True:
        try:
            with urlopen(Request(BASE + path, method=method, headers=headers, data=data)) as response:
                text = response.read()
                return json.loads(text) if text else None
        except HTTPError as error:
            seconds = int(error.headers.get("Retry-After") or 0)
            if error.code not in (429, 503) or not seconds:
                sys.exit(f"{method} {path}: {error.code}: {error.read().decode()}")
            time.sleep(seconds)


with open("webhooks.json") as file:
    wanted = json.load(file)
# An account has at most 50 webhooks by default, so one page has all of them.
existing = {webhook["url"]: webhook for webhook in call("GET", "/webhooks?page[size]=100")["data"]}

for webhook in wanted:
    url, description, types = webhook["url"], webhook.get("description", ""), webhook["event_types"]
    found = existing.pop(url, None)
    body = {"description": description, "event_types": types}
    if found is None:
        created = call("POST", "/webhooks", {"url": url, **body})
        print("created", url, created["secret"])
    elif (found["description"], sorted(found["event_types"])) != (description, sorted(types)):
        call("PATCH", f"/webhooks/{found['id']}", body)
        print("updated", url)
    else:
        print("unchanged", url)
for url, webhook in existing.items():
    call("DELETE", f"/webhooks/{webhook['id']}")
    print("deleted", url)
