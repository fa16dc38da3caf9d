# Python 3.10 or newer:  MUSTER_WEBHOOK_SECRET=whsec_… PORT=4000 python3 receiver.py
import base64
import contextlib
import hashlib
import hmac
import json
import os
import socket
import threading
import time
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAX_BODY_BYTES = 1024 * 1024
MAX_LINE_BYTES = 1024
TOLERANCE_SECONDS = 5 * 60
REQUEST_SECONDS = 10

# Both secrets are valid while you rotate them. Ignore empty ones: anyone can sign with them.
VARIABLES = ("MUSTER_WEBHOOK_SECRET", "MUSTER_WEBHOOK_NEXT_SECRET")
SECRETS = [secret for name in VARIABLES if (secret := os.environ.get(name))]
if not SECRETS:
    raise SystemExit("Set MUSTER_WEBHOOK_SECRET")

# In production, use a unique column in your database.
processed_ids: set[str] = set()
lock = threading.Lock()


class BodyTooLargeError(Exception):
    pass


def is_equal(actual: str | None, expected: str) -> bool:
    return hmac.compare_digest((actual or "").encode(), expected.encode())


def is_signed(secret: str, headers: Message, body: bytes) -> bool:
    """X-Service-Signature signs the body. webhook-signature signs ID, time and body."""
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    key = base64.b64decode(secret.removeprefix("whsec_"))
    prefix = f"{headers['webhook-id']}.{headers['webhook-timestamp']}."
    digest = hmac.new(key, prefix.encode() + body, hashlib.sha256).digest()
    timed_signature = "v1," + base64.b64encode(digest).decode()
    return is_equal(headers["X-Service-Signature"], signature) and is_equal(
        headers["webhook-signature"], timed_signature
    )


def is_recent(headers: Message) -> bool:
    """An older delivery may be a replay."""
    try:
        age_seconds = time.time() - int(headers["webhook-timestamp"] or 0)
    except ValueError:
        return False
    return abs(age_seconds) <= TOLERANCE_SECONDS


def remember(delivery_id: str) -> bool:
    """Return False if the delivery was processed before."""
    with lock:
        is_new = delivery_id not in processed_ids
        processed_ids.add(delivery_id)
        return is_new


class Receiver(BaseHTTPRequestHandler):
    def setup(self) -> None:
        super().setup()
        self.timer = threading.Timer(REQUEST_SECONDS, self.end_upload)
        self.timer.start()

    def finish(self) -> None:
        self.timer.cancel()
        super().finish()

    def end_upload(self) -> None:
        """A sender may not finish its upload, or send it byte by byte."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_POST(self) -> None:
        try:
            self.respond(self.receive())
        except BodyTooLargeError:
            self.respond(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        except ValueError:
            self.respond(HTTPStatus.BAD_REQUEST)
        except ConnectionError as error:
            self.log_error("The sender closed the connection: %s", error)

    def receive(self) -> HTTPStatus:
        # Verify the raw bytes: JSON that was parsed and serialized again can differ.
        body = self.read_body()
        if not is_recent(self.headers):
            return HTTPStatus.FORBIDDEN
        if not any(is_signed(secret, self.headers, body) for secret in SECRETS):
            return HTTPStatus.FORBIDDEN
        delivery = json.loads(body)
        if remember(delivery["id"]):
            # In production, enqueue the delivery here.
            print(delivery["event_type"], delivery["resource"]["id"], flush=True)
        return HTTPStatus.NO_CONTENT

    def read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(MAX_LINE_BYTES).split(b";")[0], 16):
            body += self.read(size, MAX_BODY_BYTES - len(body))
            self.rfile.readline(MAX_LINE_BYTES)
        while self.rfile.readline(MAX_LINE_BYTES).strip():
            pass  # a trailer field
        return body

    def read(self, size: int, limit: int = MAX_BODY_BYTES) -> bytes:
        if size < 0:
            raise ValueError("The size is negative")
        if size > limit:
            raise BodyTooLargeError
        data = self.rfile.read(size)
        if len(data) < size:
            raise ConnectionAbortedError("The body is incomplete")
        return data

    def respond(self, status: HTTPStatus) -> None:
        self.send_response(status)
        self.send_header("Allow", "POST")
        self.end_headers()

    def refuse_method(self) -> None:
        self.respond(HTTPStatus.METHOD_NOT_ALLOWED)

    do_GET = do_HEAD = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = refuse_method


if __name__ == "__main__":
    port = int(os.environ.get("PORT", "4000"))
    ThreadingHTTPServer(("127.0.0.1", port), Receiver).serve_forever()
