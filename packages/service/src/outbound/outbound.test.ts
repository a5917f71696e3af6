import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { ErrorReason } from "@depute/core";
import { afterEach, describe, expect, it } from "vitest";
import { AllowedHosts } from "./allowed-hosts.ts";
import { Outbound, readText } from "./outbound.ts";
import { isPublicAddress } from "./public-address.ts";

const servers: Server[] = [];
const calls: Outbound[] = [];
afterEach(async () => {
  for (const outbound of calls.splice(0)) outbound.close();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

function outbound(hosts: string[], names: Record<string, string[]> = {}): Outbound {
  const lookup = async (name: string) => (names[name] ?? []).map((address) => ({ address, family: 4 }));
  const testOutbound = new Outbound({ hosts: new AllowedHosts(hosts), lookup });
  calls.push(testOutbound);
  return testOutbound;
}

const request = () => ({ signal: new AbortController().signal, idleMs: 5000, maxBytes: 1000 });

describe("an address is public", () => {
  it.each(["8.8.8.8", "1.1.1.1", "172.32.0.1", "2606:4700::1111"])("%s is public", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  it.each([
    ...["0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255"],
    ...["192.168.1.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fc00::1"],
    ...["::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1", "ff02::1"],
    ...["localhost", "", "8.8.8", "0x7f000001"],
  ])("%s is not public", (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});

describe("the allowed hosts", () => {
  const hosts = new AllowedHosts([
    "a.example",
    "b.example:8443",
    "private:c.internal",
    "127.0.0.1:9",
    "[::1]:9",
  ]);

  it.each([
    ["https://a.example/x?y=1", false],
    ["http://A.Example:1234/", false],
    ["https://b.example:8443/", false],
    ["http://c.internal/", true],
    ["http://127.0.0.1:9/", true],
    ["http://2130706433:9/", true],
    ["http://[::1]:9/", true],
  ])("%s, private addresses %s", (address, mayBePrivate) => {
    expect(hosts.check(address).mayBePrivate).toBe(mayBePrivate);
  });

  it.each([
    ...[
      "https://b.example/",
      "https://evil.example/",
      "https://a.example.evil.example/",
      "https://xa.example/",
    ],
    ...[
      "http://127.0.0.1:10/",
      "http://user@a.example/",
      "https://a.example@evil.example/",
      "ftp://a.example/",
    ],
    ...["file:///etc/passwd", "//a.example/", "a.example", "", "http://[::2]:9/"],
  ])("%s is refused", (address) => {
    expect(() => hosts.check(address)).toThrowError(
      expect.objectContaining({ reason: ErrorReason.ADDRESS_NOT_ALLOWED }),
    );
  });

  it.each(["", "a b", "http://a.example", "a.example:123456", "a.example/x", "private:", "[::1"])(
    "%j is not an entry",
    (entry) => {
      expect(() => new AllowedHosts([entry])).toThrowError("host:port");
    },
  );
});

describe("a request", () => {
  it("reaches a listed host and returns its answer", async () => {
    const port = await serve((incoming, answer) => {
      answer.writeHead(201, { "x-kind": incoming.headers["x-kind"] ?? "" });
      incoming.pipe(answer);
    });
    const answer = await outbound(["127.0.0.1"]).send(`http://127.0.0.1:${port}/`, {
      ...request(),
      headers: { "x-kind": "echo" },
      body: "hello",
    });
    expect([answer.status, answer.headers["x-kind"], await readText(answer.body)]).toEqual([
      201,
      "echo",
      "hello",
    ]);
  });

  it("does not follow a redirect", async () => {
    const port = await serve((_, answer) => answer.writeHead(302, { location: "http://127.0.0.1:1/" }).end());
    const answer = await outbound(["127.0.0.1"]).send(`http://127.0.0.1:${port}/`, request());
    expect(answer.status).toBe(302);
  });

  it("does not reach a private address by a listed name, nor if only one of several is private", async () => {
    let wasReached = false;
    const port = await serve((_, answer) => {
      wasReached = true;
      answer.end();
    });
    const names = { "a.example": ["127.0.0.1"], "b.example": ["8.8.8.8", "127.0.0.1"] };
    const calls = outbound(["a.example", "b.example"], names);
    for (const name of Object.keys(names)) {
      const address = `http://${name}:${port}/`;
      const refusal = expect.objectContaining({ reason: ErrorReason.ADDRESS_NOT_ALLOWED });
      await expect(calls.send(address, request())).rejects.toEqual(refusal);
      await expect(calls.pin(address)).rejects.toEqual(refusal);
    }
    expect(wasReached).toBe(false);
  });

  it("reaches a private address if the entry allows it", async () => {
    const port = await serve((_, answer) => answer.end("in"));
    const calls = outbound(["private:c.internal"], { "c.internal": ["127.0.0.1"] });
    const answer = await calls.send(`http://c.internal:${port}/`, request());
    expect(await readText(answer.body)).toBe("in");
    expect((await calls.pin(`http://c.internal:${port}/`)).address).toBe("127.0.0.1");
  });

  it("reads an answer up to its limit", async () => {
    const port = await serve((_, answer) => answer.end("x".repeat(1001)));
    const answer = await outbound(["127.0.0.1"]).send(`http://127.0.0.1:${port}/`, request());
    await expect(readText(answer.body)).rejects.toThrow("longer than 1000 bytes");
  });

  it("fails if no answer begins in time", async () => {
    const port = await serve(() => {});
    const sent = outbound(["127.0.0.1"]).send(`http://127.0.0.1:${port}/`, { ...request(), idleMs: 20 });
    await expect(sent).rejects.toThrow("no answer within 20 ms");
  });

  it("fails if the next chunk does not arrive in time", async () => {
    const port = await serve((_, answer) => answer.write("first"));
    const sent = await outbound(["127.0.0.1"]).send(`http://127.0.0.1:${port}/`, {
      ...request(),
      idleMs: 50,
    });
    await expect(readText(sent.body)).rejects.toThrow();
  });

  it("ends when its signal aborts", async () => {
    const port = await serve((_, answer) => answer.write("first"));
    const aborter = new AbortController();
    const answer = await outbound(["127.0.0.1"]).send(`http://127.0.0.1:${port}/`, {
      ...request(),
      signal: aborter.signal,
    });
    aborter.abort();
    await expect(readText(answer.body)).rejects.toThrow();
  });

  it("ends with an unread answer without an uncaught error", async () => {
    const port = await serve((_, response) => {
      response.writeHead(200);
      response.write("a");
    });
    const stop = new AbortController();
    const { body } = await outbound(["127.0.0.1"]).send(`http://127.0.0.1:${port}/`, {
      ...request(),
      signal: stop.signal,
    });
    stop.abort();
    await new Promise((resolve) => setImmediate(resolve));
    await expect(readText(body)).rejects.toThrow();
  });

  it("does not end a connection that another request already uses", async () => {
    const port = await serve((_, response) => response.end("a"));
    const calls = outbound(["127.0.0.1"]);
    const first = new AbortController();
    const url = `http://127.0.0.1:${port}/`;
    expect(await readText((await calls.send(url, { ...request(), signal: first.signal })).body)).toBe("a");
    const second = calls.send(url, request());
    first.abort();
    expect(await readText((await second).body)).toBe("a");
    await new Promise((resolve) => setImmediate(resolve));
  });
});
