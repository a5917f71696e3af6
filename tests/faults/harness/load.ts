/**
 * The TypeScript client of the fault harness: `load.ts JOURNAL URL [GATEWAY...]`. It delegates tasks and works on them,
 * uses holder proofs twice, and reads heads of the log, until SIGTERM. URL is the address that all gateways share.
 */
import { connect, connectTo, createKey, type Depute } from "@depute/client";
import { createProof } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { Journal } from "./journal.ts";

const [journalPath = "", url = "", ...gateways] = process.argv.slice(2);
const journal = new Journal(journalPath);
const stopping = new AbortController();
process.once("SIGTERM", () => stopping.abort());

/** Longest outage that a call of this client waits for. */
const MAX_OUTAGE_MS = 90_000;
const AGENT = `worker-${process.pid}`;
const depute = connect(url, { maxOutageMs: MAX_OUTAGE_MS });

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

/**
 * Repeats a piece of load until the client stops. Records an error as a violation, because the client itself waits
 * out an outage.
 */
async function repeat(name: string, everyMs: number, once: (n: number) => Promise<void>): Promise<void> {
  for (let n = 0; !stopping.signal.aborted; n++) {
    try {
      await once(n);
    } catch (error) {
      journal.add({ kind: "violation", rule: `${name} succeeds after a retry`, error: String(error) });
    }
    await pause(everyMs);
  }
}

/** Delegates a task, follows its events and reads its result. */
async function delegateTask(n: number): Promise<void> {
  const beginMs = Date.now();
  const draft = { limits: { heartbeat: { seconds: 2n } }, retry: { maxAttempts: 100 } };
  const task = await depute.delegate({ agentId: AGENT, input: { n }, timeoutMs: 600_000, ...draft });
  journal.add({ kind: "task", id: task.id, output: { square: n * n } });
  const sequences: number[] = [];
  for await (const { sequence } of task.events()) sequences.push(sequence);
  const gap = sequences.findIndex((sequence, i) => i > 0 && sequence <= (sequences[i - 1] ?? 0));
  if (gap >= 0)
    journal.add({ kind: "violation", rule: "a resumed stream repeats no event", id: task.id, sequences });
  const { output } = await task.result();
  journal.add({ kind: "result", id: task.id, output, beginMs, ms: Date.now() - beginMs });
}

/** Sends one proof to two gateways at the same time. At most one may accept it. */
async function useProofTwice(): Promise<void> {
  const htu = `${url}/depute.tokens.v1.TokenService/GetIssuer`;
  const dpop = createProof(engine, createKey(), { htm: "POST", htu });
  const outcomes = await Promise.allSettled(
    [0, 1].map((i) =>
      connectTo(gateways[i % gateways.length] ?? url).tokens.getIssuer(
        {},
        { headers: { dpop }, timeoutMs: 10_000 },
      ),
    ),
  );
  const accepted = outcomes.filter(({ status }) => status === "fulfilled").length;
  if (accepted > 1) journal.add({ kind: "violation", rule: "a proof counts once", dpop });
  if (accepted === 1) journal.add({ kind: "proof", dpop });
}

async function readLogHead(): Promise<void> {
  const { head } = await depute.services.log.getLogHead({});
  if (head === undefined) throw new Error("the answer has no head");
  journal.add({
    kind: "head",
    size: Number(head.treeSize),
    root: Buffer.from(head.rootHash).toString("base64"),
  });
}

/** Registers an agent and reads it. Records how long both calls took together, with their retries. */
async function probe(client: Depute, n: number): Promise<void> {
  const [beginMs, id] = [Date.now(), `probe-${process.pid}-${n}`];
  await client.services.agents.registerAgent({ agent: { id } });
  journal.add({ kind: "agent", id });
  await client.services.agents.getAgent({ agentId: id });
  journal.add({ kind: "probe", beginMs, ms: Date.now() - beginMs });
}

await depute.register({ id: AGENT, description: "Squares numbers.", capabilities: [{ id: "square" }] });
const worker = depute.work({
  agentId: AGENT,
  capacity: 8,
  async work(input, { progress }) {
    const { n } = input as { n: number };
    await progress(1, 2);
    await pause(200);
    await progress(2, 2);
    return { output: { square: n * n } };
  },
  onError: (error) => journal.add({ kind: "note", text: `worker: ${error}` }),
});
console.log("ready");
const other = connect(url, { maxOutageMs: MAX_OUTAGE_MS });
await Promise.all([
  ...[0, 1, 2, 3].map((lane) => repeat("a task", 400, (n) => delegateTask(4 * n + lane))),
  repeat("a proof", 700, useProofTwice),
  repeat("a head", 1_000, readLogHead),
  repeat("a probe", 150, (n) => probe(other, n)),
]);
await worker.stop();
for (const each of [depute, other]) each.close();
