# Python 3.9 or newer:  MUSTER_WEBHOOK_SECRET=whsec_… PORT=4000 python3 receiver.py
import hashlib
import hmac
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ.get("MUSTER_WEBHOOK_SECRET", "").encode()
if not SECRET:  # anyone can sign with an empty secret
    raise SystemExit("Set MUSTER_WEBHOOK_SECRET")

# In production, use a unique column in your database.
processed = set()


def is_valid_signature(body, signature):
    expected = hmac.new(SECRET, body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), (signature or "").encode())


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        # Verify the raw bytes: JSON that was parsed and serialized again can differ.
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not is_valid_signature(body, self.headers.get("X-Service-Signature")):
            return self.respond(403)
        delivery = json.loads(body)
        if delivery["id"] not in processed:
            processed.add(delivery["id"])
            # In production, enqueue the delivery here.
            print(delivery["event_type"], delivery["resource"]["id"], flush=True)
        self.respond(204)

    def respond(self, status):
        self.send_response(status)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 4000))), Receiver).serve_forever()
