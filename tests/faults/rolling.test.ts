import { Code, ConnectError } from "@connectrpc/connect";
import { connect } from "@depute/client";
import { hasPostgres, ownPostgresForTests } from "@depute/store/testing";
import { afterEach, expect, test } from "vitest";
import { startCluster } from "./harness/running-cluster.ts";
import { CleanUp, dataFolder } from "./platform.ts";

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());

const AGENT = "long-worker";
/** Number of attempts of one call. Each process that restarts may refuse one. */
const MAX_ATTEMPTS = 15;
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

test.runIf(hasPostgres() || process.env.CI === "true")(
  "a rolling restart: a call fails at most as unavailable, a stream resumes at its cursor, a worker keeps its lease",
  { timeout: 300_000 },
  async () => {
    const postgres = await ownPostgresForTests();
    cleanUp.add(async () => postgres?.stop());
    const cluster = await startCluster({
      ...{ replicas: 2, folder: await dataFolder(cleanUp) },
      env: { DEPUTE_POSTGRES_URL: postgres?.url ?? "", DEPUTE_REDIS_URL: "" },
    });
    cleanUp.add(() => cluster.stop());
    const depute = connect(cluster.url);
    const single = connect(cluster.url, { maxOutageMs: 0 });
    for (const client of [depute, single]) cleanUp.add(async () => client.close());

    await depute.register({ id: AGENT, description: "Works long.", capabilities: [{ id: "work" }] });
    let isOver = false;
    let reports = 0;
    const worker = depute.work({
      agentId: AGENT,
      async work(_input, { progress }) {
        for (; !isOver; await pause(200)) await progress(reports++, 0);
        return { output: { reports } };
      },
      onError: () => {},
    });
    cleanUp.add(() => worker.stop());
    // With a single attempt, a lost lease would fail the task. The restarts together take much longer than the lease.
    const limits = { heartbeat: { seconds: 15n } };
    const task = await depute.delegate({
      agentId: AGENT,
      input: {},
      timeoutMs: 600_000,
      limits,
      retry: { maxAttempts: 1 },
    });
    const sequences: bigint[] = [];
    const watching = (async () => {
      for await (const { sequence } of task.events()) sequences.push(BigInt(sequence));
    })();

    const codes = new Set<string>();
    let calls = 0;
    const load = (async () => {
      for (; !isOver; await pause(50)) {
        const request = { requestId: crypto.randomUUID(), agent: { id: `agent-${calls++}` } };
        for (let attempt = 1; ; attempt++) {
          try {
            await single.services.agents.registerAgent(request);
            break;
          } catch (error) {
            codes.add(Code[ConnectError.from(error).code]);
            if (attempt === MAX_ATTEMPTS) throw error;
            await pause(200);
          }
        }
      }
    })();

    await Promise.race([cluster.restartInTurn(), load]);
    isOver = true;
    await load;
    const { output } = await task.result();
    await watching;
    expect(output).toEqual({ reports });
    expect(sequences).toEqual(sequences.map((_, i) => (sequences[0] ?? 0n) + BigInt(i)));
    expect([...codes].filter((code) => code !== Code[Code.Unavailable])).toEqual([]);
    expect(calls).toBeGreaterThan(20);
    const { services } = cluster.state();
    expect(services).toHaveLength(10);
    expect(services.filter(({ restarts }) => restarts < 1)).toEqual([]);
  },
);
