import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { connect as http2Connect } from "node:http2";
import { Agent, request as httpsRequest, type RequestOptions } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as tlsConnect } from "node:tls";
import { ManualClock, systemTimers } from "@depute/core";
import * as grpc from "@grpc/grpc-js";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { sendJson } from "../http-answers.ts";
import { createLogger } from "../log.ts";
import type { Server, ServerOptions } from "../server.ts";
import { startEchoServer } from "../testing/echo-server.ts";
import { Certificates, type TlsSettings } from "./certificates.ts";
import { DevelopmentAuthority, type Identity } from "./development-certificates.ts";

const UNARY = "/depute.testing.EchoService/Unary";
const log = createLogger({ level: "silent", name: "test" });
const routes: ServerOptions["routes"] = [
  {
    methods: ["GET"],
    path: "/version",
    async handle(request, response) {
      sendJson(response, 200, request.httpVersion);
    },
  },
];
const closing: (() => unknown)[] = [];
let authority: DevelopmentAuthority;
let other: DevelopmentAuthority;
let stranger: Identity;
let client: Identity;

beforeAll(async () => {
  const [notBefore, notAfter] = [new Date(Date.now() - 60_000), new Date(Date.now() + 3_600_000)];
  authority = await DevelopmentAuthority.create(notBefore, notAfter);
  client = await authority.issue({ uris: ["spiffe://example.org/client"] });
  other = await DevelopmentAuthority.create(notBefore, notAfter);
  stranger = await other.issue({ uris: ["spiffe://example.org/client"] });
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "depute-listener-"));
  closing.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

interface Scene {
  readonly server: Server;
  readonly certificates: Certificates;
  /** Replaces the files of the certificate and its key. */
  save(identity: Identity): void;
  /** Replaces the authorities of client certificates. */
  saveAuthority(certificate: string): void;
}

async function start(changes: Partial<TlsSettings> = {}, more: Partial<ServerOptions> = {}): Promise<Scene> {
  const folder = temporaryFolder();
  const path = (name: string): string => join(folder, name);
  const save = ({ certificate, key }: Identity): void => {
    writeFileSync(path("server.pem"), certificate);
    writeFileSync(path("server.key"), key);
  };
  save(await authority.issue({ hosts: ["localhost", "127.0.0.1"] }));
  const saveAuthority = (certificate: string) => writeFileSync(path("ca.pem"), certificate);
  saveAuthority(authority.certificate);
  const settings: TlsSettings = {
    tlsCertFile: path("server.pem"),
    tlsKeyFile: path("server.key"),
    tlsClientCaFile: changes.tlsClientAuth === undefined ? "" : path("ca.pem"),
    tlsClientAuth: "required",
    tlsCaFile: path("ca.pem"),
    tlsMinVersion: "1.2",
    ...changes,
  };
  const certificates = Certificates.open({ settings, timers: systemTimers, log });
  closing.push(() => certificates.close());
  const { server } = await startEchoServer({
    fast: true,
    maxRequestBytes: 1000,
    server: { routes, certificates, ...more },
  });
  closing.push(() => server.close(50));
  return { server, certificates, save, saveAuthority };
}

/** Calls GET /version over HTTP/1.1, and returns the response's text. */
function overHttp1(url: string, options: RequestOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const send = url.startsWith("https:") ? httpsRequest : httpRequest;
    const allOptions = { ca: authority.certificate, agent: false as const, ...options };
    const request = send(`${url}/version`, allOptions, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve(text));
    });
    request.on("error", reject);
    request.end();
  });
}

/** Calls GET /version over HTTP/2, and returns the response's text. */
function overHttp2(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const session = http2Connect(url, { ca: authority.certificate });
    session.on("error", reject);
    const stream = session.request({ ":path": "/version" });
    let text = "";
    stream.setEncoding("utf8");
    stream.on("data", (part: string) => {
      text += part;
    });
    stream.on("end", () => {
      session.close();
      resolve(text);
    });
    stream.end();
  });
}

/** Calls an RPC with @grpc/grpc-js, and returns the code of its status. */
function overGrpcJs(port: number, identity?: Identity): Promise<number> {
  const credentials = grpc.credentials.createSsl(
    Buffer.from(authority.certificate),
    identity && Buffer.from(identity.key),
    identity && Buffer.from(identity.certificate),
  );
  const caller = new grpc.Client(`localhost:${port}`, credentials);
  return new Promise((resolve) => {
    const asBytes = (value: Buffer): Buffer => value;
    const options = { deadline: Date.now() + 10_000 };
    caller.makeUnaryRequest(UNARY, asBytes, asBytes, Buffer.alloc(0), options, (error) => {
      caller.close();
      resolve(error?.code ?? grpc.status.OK);
    });
  });
}

describe("a listener with TLS", () => {
  it("serves HTTP/1.1, HTTP/2 and gRPC on one port", async () => {
    const { server } = await start();
    expect(server.url).toBe(`https://127.0.0.1:${server.port}`);
    expect(await overHttp1(server.url)).toBe('"1.1"');
    expect(await overHttp2(server.url)).toBe('"2.0"');
    expect(await overGrpcJs(server.port)).toBe(grpc.status.OK);
  });

  it("negotiates the protocol by ALPN", async () => {
    const { server } = await start();
    const negotiated = (ALPNProtocols: string[]) =>
      new Promise<unknown>((resolve, reject) => {
        const socket = tlsConnect({ port: server.port, ca: authority.certificate, ALPNProtocols }, () => {
          resolve(socket.alpnProtocol);
          socket.destroy();
        });
        socket.on("error", reject);
      });
    expect(await negotiated(["http/1.1", "h2"])).toBe("h2");
    expect(await negotiated(["http/1.1"])).toBe("http/1.1");
    await expect(negotiated(["spdy/3"])).rejects.toThrow(/no application protocol/);
  });

  it("does not answer in clear text", async () => {
    const { server } = await start();
    await expect(overHttp1(server.url.replace("https:", "http:"))).rejects.toThrow(
      /socket hang up|ECONNRESET|EPIPE|Parse Error/,
    );
  });

  it("refuses versions of TLS below the setting", async () => {
    const { server } = await start({ tlsMinVersion: "1.3" });
    await expect(overHttp1(server.url, { maxVersion: "TLSv1.2" })).rejects.toThrow(/protocol version/);
    expect(await overHttp1(server.url)).toBe('"1.1"');
  });

  it("does not wait for handshakes when it drains", async () => {
    const { server } = await start();
    const socket = connect(server.port, "127.0.0.1");
    const ended = new Promise((resolve) => socket.once("close", resolve));
    await new Promise((resolve) => socket.once("connect", resolve));
    // This response shows that the server has also accepted the earlier connection.
    await overHttp1(server.url);
    await server.close(60_000);
    await ended;
  });

  it("uses changed files for new connections", async () => {
    const { server, certificates, save } = await start();
    const serialNumber = () =>
      new Promise<string>((resolve, reject) => {
        const options = { port: server.port, ca: authority.certificate, servername: "localhost" };
        const socket = tlsConnect(options, () => {
          resolve(socket.getPeerCertificate().serialNumber);
          socket.destroy();
        });
        socket.on("error", reject);
      });
    const before = await serialNumber();
    expect(await serialNumber()).toBe(before);
    save(await authority.issue({ hosts: ["localhost", "127.0.0.1"] }));
    certificates.check();
    expect(await serialNumber()).not.toBe(before);
  });
});

describe("client certificates", () => {
  it.each([
    ["required", "none", false],
    ["required", "another authority's", false],
    ["required", "a trusted one", true],
    ["optional", "none", true],
    ["optional", "a trusted one", true],
  ])("that are %s: a client with %s is accepted: %s", async (tlsClientAuth, presented, isLetIn) => {
    const { server } = await start({ tlsClientAuth });
    const identity = { none: undefined, "another authority's": stranger, "a trusted one": client }[presented];
    const answer = overHttp1(server.url, identity && { cert: identity.certificate, key: identity.key });
    if (isLetIn) expect(await answer).toBe('"1.1"');
    else await expect(answer).rejects.toThrow(/alert|ECONNRESET|EPIPE|socket hang up/);
    const code = await overGrpcJs(server.port, identity);
    expect(code).toBe(isLetIn ? grpc.status.OK : grpc.status.UNAVAILABLE);
  });

  it("of a changed file of authorities count for new connections", async () => {
    const { server, certificates, saveAuthority } = await start({ tlsClientAuth: "required" });
    expect(await overGrpcJs(server.port, client)).toBe(grpc.status.OK);
    saveAuthority(other.certificate);
    certificates.check();
    expect(await overGrpcJs(server.port, client)).toBe(grpc.status.UNAVAILABLE);
    expect(await overGrpcJs(server.port, stranger)).toBe(grpc.status.OK);
  });

  it("that have expired are refused", async () => {
    const { server } = await start({ tlsClientAuth: "required" });
    const [notBefore, notAfter] = [new Date(Date.now() - 60_000), new Date(Date.now() - 1000)];
    const expired = await authority.issue({ hosts: ["client"] }, { notBefore, notAfter });
    expect(await overGrpcJs(server.port, expired)).toBe(grpc.status.UNAVAILABLE);
  });
});

describe("the age of connections", () => {
  const MAX_AGE_MS = 60_000;

  async function startWithAge(): Promise<{ server: Server; clock: ManualClock }> {
    const clock = new ManualClock();
    const { server } = await start({}, { maxConnectionAgeMs: MAX_AGE_MS, random: () => 0.5, timers: clock });
    return { server, clock };
  }

  it("ends an old HTTP/2 connection by GOAWAY", async () => {
    const { server, clock } = await startWithAge();
    const session = http2Connect(server.url, { ca: authority.certificate });
    closing.push(() => session.destroy());
    await new Promise((resolve) => session.once("remoteSettings", resolve));
    const goaway = new Promise((resolve) => session.once("goaway", resolve));
    const ended = new Promise((resolve) => session.once("close", resolve));
    clock.advance(MAX_AGE_MS - 1);
    expect(session.closed).toBe(false);
    clock.advance(1);
    await goaway;
    await ended;
  });

  it("lets open streams of an old HTTP/2 connection end", async () => {
    const { server, clock } = await startWithAge();
    const session = http2Connect(server.url, { ca: authority.certificate });
    closing.push(() => session.destroy());
    const headers = { ":path": UNARY, ":method": "POST", "content-type": "application/json" };
    const stream = session.request(headers);
    const answered = new Promise((resolve) =>
      stream.once("response", (response) => resolve(response[":status"])),
    );
    await new Promise((resolve) => session.once("remoteSettings", resolve));
    stream.write("{");
    // The response to the ping shows that the server has read the beginning of the request.
    await new Promise((resolve) => session.ping(resolve));
    const goaway = new Promise((resolve) => session.once("goaway", resolve));
    clock.advance(MAX_AGE_MS);
    await goaway;
    stream.end("}");
    expect(await answered).toBe(200);
  });

  it("asks an HTTP/1.1 client to reconnect after its next request", async () => {
    const { server, clock } = await startWithAge();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    closing.push(() => agent.destroy());
    const connectionHeader = () =>
      new Promise<string | undefined>((resolve, reject) => {
        const options = { ca: authority.certificate, agent };
        const request = httpsRequest(`${server.url}/version`, options, (response) => {
          response.resume();
          response.on("end", () => resolve(response.headers.connection));
        });
        request.on("error", reject);
        request.end();
      });
    expect(await connectionHeader()).toBe("keep-alive");
    clock.advance(MAX_AGE_MS);
    expect(await connectionHeader()).toBe("close");
    expect(await connectionHeader()).toBe("keep-alive");
  });
});

describe("a UNIX socket", () => {
  it("serves HTTP/1.1 and gRPC without TLS, to its owner and group", async () => {
    const path = join(temporaryFolder(), "gateway.sock");
    const { server } = await start({}, { place: { path } });
    expect(server).toMatchObject({ url: `unix:${path}`, port: 0 });
    expect(statSync(path).mode & 0o777).toBe(0o660);
    expect(await overHttp1("http://localhost", { socketPath: path })).toBe('"1.1"');
    const caller = new grpc.Client(server.url, grpc.credentials.createInsecure());
    closing.push(() => caller.close());
    await new Promise<void>((resolve, reject) =>
      caller.waitForReady(Date.now() + 10_000, (error) => (error ? reject(error) : resolve())),
    );
  });

  it("does not take the file of a process that still listens", async () => {
    const path = join(temporaryFolder(), "gateway.sock");
    await start({}, { place: { path } });
    await expect(start({}, { place: { path } })).rejects.toThrow(/EADDRINUSE/);
    expect(await overHttp1("http://localhost", { socketPath: path })).toBe('"1.1"');
  });
});
