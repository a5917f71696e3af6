import { closeSync, existsSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import { type Grant, grant, holderFetch } from "../../tests/mcp/holder.ts";
import { startPlatform } from "../../tests/mcp/platform.ts";
import { amount } from "../amount.ts";
import type { Benchmark, Figure } from "../bench.ts";

/** Number of measured calls. `WARM` is the number of warm-up calls before them. */
const CALLS = amount(1000);
const WARM = amount(300);

const DEFINITION = { name: "echo", description: "gives back", inputSchema: { type: "object" as const } };

/**
 * Starts an MCP server over HTTP that answers at once. The measured time is therefore that of the proxy and the
 * transport.
 */
async function startServer() {
  const handler = createMcpHandler(() => {
    const server = new Server({ name: "bench", version: "1.0.0" }, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => ({ tools: [DEFINITION] }));
    server.setRequestHandler("tools/call", ({ params }) => ({
      content: [{ type: "text", text: JSON.stringify(params.arguments) }],
    }));
    return server;
  });
  const http = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const headers = new Headers(
      Object.entries(request.headers).map(([k, v]) => [k, String(v)] as [string, string]),
    );
    const url = `http://${request.headers.host}${request.url}`;
    const body = chunks.length === 0 ? null : Buffer.concat(chunks);
    const answer = await handler.fetch(new Request(url, { method: request.method ?? "", headers, body }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/`,
    close: () => {
      http.closeAllConnections();
      http.close();
    },
  };
}

async function connect(url: string, via?: typeof fetch): Promise<Client> {
  const client = new Client(
    { name: "bench", version: "1.0.0" },
    { versionNegotiation: { mode: { pin: "2026-07-28" } } },
  );
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url), via === undefined ? {} : { fetch: via }),
  );
  return client;
}

/**
 * Returns the milliseconds of each call. The clients take turns, so that other load of the machine affects them
 * equally.
 */
async function measure(clients: readonly Client[]): Promise<number[][]> {
  const times = clients.map((): number[] => []);
  for (let i = 0; i < WARM + CALLS; i++) {
    for (const [at, client] of clients.entries()) {
      const begin = performance.now();
      await client.callTool({ name: "echo", arguments: { n: i } });
      if (i >= WARM) times[at]?.push(performance.now() - begin);
    }
  }
  return times.map((one) => one.sort((a, b) => a - b));
}

const median = (times: readonly number[] | undefined) => times?.[Math.floor(times.length / 2)] ?? Number.NaN;

/** A file system in memory, where a flush costs nothing. Only the work of the proxy and the services remains. */
const IN_MEMORY = "/dev/shm";

async function benchmark(name: string, folder: string): Promise<Benchmark> {
  const dataDir = mkdtempSync(join(folder, "depute-bench-"));
  const server = await startServer();
  const rule = { namespace: "compute", action: "execute", resource: "echo" };
  const http = { url: server.url };
  const upstreams = {
    free: { http, map: { tools: { echo: rule } }, revision: "modern" },
    paid: { http, map: { tools: { echo: { ...rule, cost: 1 } } }, revision: "modern" },
  };
  const platform = await startPlatform(upstreams, ["--data-dir", dataDir]);
  const holderGrant: Grant = await grant(platform, [["compute", "execute", "echo"]], 1_000_000_000);
  // All clients create holder proofs, so that the cost of a proof does not show in the difference.
  const via = holderFetch(holderGrant);
  const clients = [
    await connect(server.url, via),
    await connect(platform.mcp("free"), via),
    await connect(platform.mcp("paid"), via),
  ];
  let measured: Promise<number[][]> | undefined;
  const p50 = async (at: number) => {
    measured ??= measure(clients);
    return median((await measured)[at]);
  };
  const added = (addedCost: string, at: number): Figure => ({
    name: addedCost,
    unit: "ms",
    atMost: 1.5,
    measure: async () => (await p50(at)) - (await p50(0)),
  });
  return {
    name,
    figures: [
      { name: "a flush of the disk", unit: "ms", measure: () => flushMs(dataDir) },
      { name: "a call without the proxy", unit: "ms", measure: () => p50(0) },
      added("added: the token verified", 1),
      added("added: and its budget reserved and committed", 2),
    ],
    close: async () => {
      for (const client of clients) await client.close();
      await platform.stop();
      server.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/**
 * Measures one flush to disk. A call with a cost waits for one flush, because its reservation must be durable first.
 * Used proofs and charges delay no response.
 */
function flushMs(folder: string): number {
  const file = openSync(join(folder, "flush"), "w");
  const times = Array.from({ length: 200 }, () => {
    writeSync(file, Buffer.alloc(4096));
    const begin = performance.now();
    fdatasyncSync(file);
    return performance.now() - begin;
  });
  closeSync(file);
  return median(times.sort((a, b) => a - b));
}

export default async function benchmarks(): Promise<Benchmark[]> {
  const onDisk = await benchmark("what the proxy adds to a call, p50, data on disk", tmpdir());
  if (!existsSync(IN_MEMORY)) return [onDisk];
  return [await benchmark("what the proxy adds to a call, p50, data in memory", IN_MEMORY), onDisk];
}
