import { expect, test } from "vitest";
import { isTransportFailure } from "./transport-failure.ts";

test.each([
  [1, "http/2 stream closed with error code CANCEL (0x8)", true],
  [3, "protocol error: incomplete envelope", true],
  [10, "read ECONNRESET", true],
  [13, "Stream closed with error code NGHTTP2_REFUSED_STREAM", true],
  [13, "serialize binary: cannot encode field depute.bench.Ping.text", false],
  [14, "connect ECONNREFUSED 127.0.0.1:1", true],
  [4, "the operation timed out", false],
  [5, "HTTP 404", false],
  [7, "HTTP 403", false],
  [8, "message is larger than configured readMaxBytes", false],
  [12, "unsupported content type text/html", false],
  [16, "HTTP 401", false],
])("status %i, %s: %s", (code, rawMessage, expected) => {
  expect(isTransportFailure({ code, rawMessage })).toBe(expected);
});
