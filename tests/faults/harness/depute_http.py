"""Calls of the platform as JSON over HTTP/1.1, with Python's standard library alone."""

import http.client
import json
import struct
import time
import urllib.parse

OUTAGE = ("unavailable",)


class Refused(Exception):
    """An answer of the platform that is an error."""

    def __init__(self, code, reason, message):
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason


def _refusal(body):
    reason = ""
    for detail in body.get("details", []):
        reason = (detail.get("debug") or {}).get("reason", reason)
    return Refused(body.get("code", ""), reason, body.get("message", ""))


class Replica:
    """One address of the platform, with a connection that is opened again after each fault."""

    def __init__(self, url, timeout=20):
        self.url = url
        parts = urllib.parse.urlsplit(url)
        self._address = (parts.hostname, parts.port)
        self._timeout = timeout
        self._connection = None

    def read(self, method, request, headers=None):
        """Makes a call that changes nothing. It is repeated once if the server has closed the idle connection."""
        try:
            return self.call(method, request, headers)
        except (OSError, http.client.HTTPException):
            return self.call(method, request, headers)

    def call(self, method, request, headers=None):
        """Makes one attempt of a unary call. Raises Refused, OSError or http.client.HTTPException."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection(*self._address, timeout=self._timeout)
        try:
            self._connection.request(
                "POST", f"/{method}", json.dumps(request), {"content-type": "application/json", **(headers or {})}
            )
            answer = self._connection.getresponse()
            body = json.loads(answer.read() or b"{}")
        except BaseException:
            self.close()
            raise
        if answer.status == 200:
            return body
        raise _refusal(body)

    def stream(self, method, request, until):
        """Yields the messages of a server stream until `until(message)` holds or the stream ends."""
        connection = http.client.HTTPConnection(*self._address, timeout=self._timeout)
        body = json.dumps(request).encode()
        try:
            connection.request(
                "POST", f"/{method}", struct.pack(">BI", 0, len(body)) + body, {"content-type": "application/connect+json"}
            )
            answer = connection.getresponse()
            while True:
                flags, length = struct.unpack(">BI", answer.read(5))
                message = json.loads(answer.read(length))
                if flags & 2:
                    if "error" in message:
                        raise _refusal(message["error"])
                    return
                yield message
                if until(message):
                    return
        finally:
            connection.close()

    def close(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Platform:
    """Several addresses of one platform. A call is repeated at the next one while the platform is unavailable."""

    def __init__(self, urls, outage_seconds=90):
        self._replicas = [Replica(url) for url in urls]
        self._outage_seconds = outage_seconds
        self._turn = 0

    def call(self, method, request):
        end = time.monotonic() + self._outage_seconds
        wait = 0.05
        while True:
            self._turn += 1
            replica = self._replicas[self._turn % len(self._replicas)]
            try:
                return replica.call(method, request)
            except Refused as refused:
                if refused.code not in OUTAGE or time.monotonic() > end:
                    raise
            except (OSError, http.client.HTTPException, json.JSONDecodeError):
                if time.monotonic() > end:
                    raise
            time.sleep(wait)
            wait = min(wait * 2, 1)
