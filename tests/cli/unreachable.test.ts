import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type User, userOf } from "./depute.ts";

/** This server speaks only HTTP/1.1: it answers the first bytes of every connection with status 400. */
const server = createServer((socket) => {
  socket.on("error", () => {});
  socket.once("data", () => socket.end("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"));
});
let user: User;
let port: number;
beforeAll(async () => {
  user = userOf("http://127.0.0.1:1");
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  server.close();
  user.remove();
});

describe("a command without a platform says so in one line, and exits with 5", () => {
  test.each([
    [
      "nothing listens",
      () => "http://127.0.0.1:1",
      "connect ECONNREFUSED 127.0.0.1:1; check that the platform runs",
    ],
    ["the host is unknown", () => "http://depute.invalid", "getaddrinfo "],
    ["another server listens", () => `http://127.0.0.1:${port}`, "the connection to the platform failed: "],
    [
      "the server has no TLS",
      () => `https://127.0.0.1:${port}`,
      "the connection to the platform failed: TLS: wrong version number; check whether --server is an http",
    ],
  ])("where %s", async (_, url, message) => {
    for (const words of [
      ["tasks", "list"],
      ["tasks", "watch", "t"],
    ]) {
      const { code, out, err } = await user.run([...words, "--server", url()]);
      expect({ code, out, lines: err.trimEnd().split("\n").length }).toEqual({ code: 5, out: "", lines: 1 });
      expect(err).toContain(`depute: ${message}`);
    }
  });
});
