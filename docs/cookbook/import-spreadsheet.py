# Imports people.csv, saved by a spreadsheet program as CSV in UTF-8. Its first row names fields of a
# participant, for example full_name,email,external_id. Writes refused rows to refused.csv.
import json
import os
import sys
import time
import uuid
from urllib.error import HTTPError
from urllib.request import Request, urlopen

BASE = os.environ["MUSTER_URL"] + "/public/v1"
POLL_SECONDS = 2


def call(method, path, data=None):
    headers = {"Authorization": f"Bearer {os.environ['MUSTER_API_KEY']}"}
    if data is not None:
        headers |= {"Content-Type": "text/csv", "Idempotency-Key": str(uuid.uuid4())}
    while True:
        try:
            with urlopen(Request(BASE + path, method=method, headers=headers, data=data)) as response:
                return response.read()
        except HTTPError as error:
            seconds = int(error.headers.get("Retry-After") or 0)
            if error.code not in (429, 503) or not seconds:
                sys.exit(f"{error.code}: {error.read().decode()}")
            time.sleep(seconds)


with open("people.csv", "rb") as file:
    found = json.loads(call("POST", "/imports?resource=participants&mode=upsert", file.read()))
while found["status"] in ("queued", "processing"):
    time.sleep(POLL_SECONDS)
    found = json.loads(call("GET", f"/imports/{found['id']}"))
print(
    f"{found['created_count']} created, {found['updated_count']} updated, "
    f"{found['unchanged_count']} unchanged, {found['refused_count']} refused."
)
if found["refused_count"] > 0:
    with open("refused.csv", "wb") as file:
        file.write(call("GET", f"/imports/{found['id']}/errors"))
    print("Correct the rows in refused.csv, and import them again.", file=sys.stderr)
if found["status"] == "failed":
    sys.exit(found["error"])
