import { connect, WorkFailure } from "@depute/client";
import { CommandError } from "../exit-codes.ts";
import type { Invocation } from "../table/command.ts";
import { keyOf, targetOf } from "./connection.ts";
import { readCredential } from "./files.ts";
import { remark } from "./output.ts";
import { runProgram } from "./program.ts";
import { durationMs, wholeNumber } from "./request.ts";
import { tlsOf } from "./tls.ts";

/** After SIGINT or SIGTERM, running tasks may continue for this many milliseconds. Then they return to the queue. */
const STOP_MS = 10_000;
/** Maximum time to wait for the remaining output of a killed program, in milliseconds. */
const KILLED_MS = 5_000;
const MAX_CAPACITY = 100;

/** `depute worker --agent A -- COMMAND`. Runs until SIGINT or SIGTERM. */
export async function worker(invocation: Invocation): Promise<void> {
  const { values, rest } = invocation;
  const [program, ...args] = rest;
  if (program === undefined) {
    throw new CommandError(
      "a worker needs a program; write it after --, e.g. depute worker --agent echo -- cat",
    );
  }
  const agentId = String(values.agent);
  const capacity = Number(wholeNumber(String(values.capacity), "--capacity"));
  if (capacity < 1 || capacity > MAX_CAPACITY) {
    throw new CommandError(`--capacity is ${capacity}, but must be a number from 1 to ${MAX_CAPACITY}`);
  }
  const graceMs = durationMs(String(values.grace), "--grace");
  const depute = connect(...(await addressOf(invocation)));
  try {
    await register(depute, agentId, (values.capability ?? []) as readonly string[]);
    const running = depute.work({
      agentId,
      capacity,
      abandonAfterMs: graceMs + KILLED_MS,
      onError: (error) =>
        remark(`depute: ${error instanceof Error ? error.message : String(error)}; the worker continues`),
      work: async (input, context) => {
        const { output, failure } = await runProgram({ program, args, input, context, graceMs });
        if (failure !== undefined) throw new WorkFailure(failure.reason, failure.message, failure.retryable);
        return { output: output ?? null };
      },
    });
    remark(`depute: the worker of ${agentId} takes assignments; Ctrl-C ends it`);
    await stopSignal();
    await running.stop(STOP_MS);
  } finally {
    depute.close();
  }
}

async function addressOf(invocation: Invocation): Promise<Parameters<typeof connect>> {
  const target = targetOf(invocation);
  const { server, publicUrl, secretFile, tokenFile } = target;
  const tls = tlsOf(target);
  const key = await keyOf(target);
  if (secretFile !== undefined && key !== undefined) {
    throw new CommandError("a call may have only one kind of credentials; set either a secret or a key");
  }
  return [
    server,
    {
      ...(publicUrl !== undefined && { publicUrl }),
      ...(tls !== undefined && { tls }),
      ...(secretFile !== undefined && { secret: readCredential(secretFile) }),
      ...(key !== undefined && { key, ...(tokenFile !== undefined && { token: readCredential(tokenFile) }) }),
    },
  ];
}

async function register(
  depute: ReturnType<typeof connect>,
  id: string,
  capabilities: readonly string[],
): Promise<void> {
  if (capabilities.length === 0) return;
  await depute.register({ id, version: "1.0.0", capabilities: capabilities.map((name) => ({ id: name })) });
}

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
}
