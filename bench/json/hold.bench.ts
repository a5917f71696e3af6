import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { amount } from "../amount.ts";
import type { Benchmarks, Figure } from "../bench.ts";

const ROUNDS = amount(5);
/** Warm-up calls, so that the engine's compilation of new code is not measured. */
const WARM_UP = 2;
const MAX_HELD_MS = 50;

const MIB = 1024 * 1024;

/** Hostile bodies: large, deeply nested, or with as many values as the platform accepts. */
const BODIES: [name: string, text: string][] = [
  ["4 MB of numbers", `[${"1,".repeat(2 * MIB - 500)}1]`],
  ["4 MB of empty objects", `[${"{},".repeat(MIB + 300_000)}{}]`],
  ["4 MB of members", `{${Array.from({ length: 300_000 }, (_, i) => `"m${i}":1`).join(",")}}`],
  ["1 MB of [", "[".repeat(MIB)],
  ["4 MB of one text", JSON.stringify({ a: "x".repeat(4 * MIB - 1000) })],
  ["4 MB of escapes", `{"a":"${"\\u0041".repeat(690_000)}"}`],
  ["as many values as a text may hold", `[${"1,".repeat(49_990)}1]`],
  [
    "as many members as a text may hold",
    `{${Array.from({ length: 24_990 }, (_, i) => `"m${i}":1`).join(",")}}`,
  ],
];

const inParams = (text: string) =>
  `{"jsonrpc":"2.0","id":1,"method":"nekte.discover","params":{"level":0,"x":${text}}}`;
/** One address of each JSON wire, and one of Connect JSON. */
const ADDRESSES: [name: string, path: string, wrap: (text: string) => string][] = [
  ["NEKTE", "/nekte", inParams],
  ["DelegateOS", "/delegateos", inParams],
  ["Agenta", "/agenta/execution_requests", (text) => text],
  ["ASP", "/v1/asp/sessions", (text) => text],
  ["CAP", "/cap/messages", (text) => text],
  ["MCP", "/mcp", inParams],
  ["Connect JSON", "/depute.verifier.v1.VerificationService/CheckOutput", (text) => `{"output":${text}}`],
];

/** Measures how long a JSON body blocks the platform's event loop, compared with JSON.parse of the same bytes. */
const benchmarks: Benchmarks = async () => {
  const server = fork(join(import.meta.dirname, "server.ts"), {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const [{ url }] = (await once(server, "message")) as [{ url: string }];
  const load = async () => {
    server.send("load");
    const [{ held }] = (await once(server, "message")) as [{ held: number }];
    return held;
  };
  const holdFigure = (name: string, path: string, body: string): Figure => ({
    name,
    unit: "ms",
    atMost: MAX_HELD_MS,
    async measure() {
      let longest = 0;
      for (let i = -WARM_UP; i < ROUNDS; i++) {
        await load();
        const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
        const answer = await fetch(`${url}${path}`, { method: "POST", headers, body });
        await answer.arrayBuffer();
        const ms = await load();
        if (i >= 0) longest = Math.max(longest, ms);
      }
      return longest;
    },
  });
  const parsed = (text: string): Figure => ({
    name: "JSON.parse alone",
    unit: "ms",
    measure() {
      let longest = 0;
      for (let i = -WARM_UP; i < ROUNDS; i++) {
        const begin = process.threadCpuUsage();
        try {
          JSON.parse(text);
        } catch {
          // A body that is not JSON also takes time to parse, so the error is ignored.
        }
        const { user, system } = process.threadCpuUsage(begin);
        if (i >= 0) longest = Math.max(longest, (user + system) / 1000);
      }
      return longest;
    },
  });
  return BODIES.map(([name, text], place) => ({
    name: `${name}: longest that the event loop was held in ${ROUNDS} requests`,
    figures: [parsed(text), ...ADDRESSES.map(([wire, path, wrap]) => holdFigure(wire, path, wrap(text)))],
    ...(place === BODIES.length - 1 ? { close: () => void server.disconnect() } : {}),
  }));
};
export default benchmarks;
