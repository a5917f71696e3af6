import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { HolderSessionService } from "@depute/contracts/depute/tokens/v1/holder_session_service_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { createGrpcJsTransport } from "@depute/grpc-js";

/** The tokens service in another process, with gRPC clients of the service. */
export interface Served {
  readonly tokens: Client<typeof TokenService>;
  readonly revocations: Client<typeof RevocationService>;
  readonly sessions: Client<typeof HolderSessionService>;
  /** Returns the CPU time of all threads of the service so far, in microseconds. */
  cpu(): Promise<number>;
  close(): void;
}

/**
 * Starts the tokens service in another process.
 *
 * @param settings flags of every server, such as `--postgres-url`
 */
export async function serve(redisUrl = "", settings: readonly string[] = []): Promise<Served> {
  const child = fork(join(import.meta.dirname, "server.ts"), [redisUrl, ...settings], {
    execArgv: ["--max-semi-space-size=16"],
  });
  const { address } = await firstMessage<{ address: string }>(child);
  const transport = createGrpcJsTransport(address);
  return {
    tokens: createClient(TokenService, transport),
    revocations: createClient(RevocationService, transport),
    sessions: createClient(HolderSessionService, transport),
    async cpu() {
      child.send("cpu");
      const { cpu } = await firstMessage<{ cpu: NodeJS.CpuUsage }>(child);
      return cpu.user + cpu.system;
    },
    close() {
      transport.close();
      child.disconnect();
    },
  };
}

/** Starts a Redis on a free port, or uses the one that DEPUTE_REDIS_URL names; undefined without either. */
export async function startRedis(): Promise<{ url: string; close: () => void } | undefined> {
  const givenRedis = process.env.DEPUTE_REDIS_URL;
  if (givenRedis !== undefined && givenRedis !== "") return { url: givenRedis, close: () => {} };
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as { port: number };
  probe.close();
  const redis = spawn("redis-server", ["--port", String(port), "--save", "", "--appendonly", "no"]);
  const isUp = await new Promise<boolean>((resolve) => {
    redis.once("error", () => resolve(false));
    redis.stdout.on("data", (text: Buffer) => {
      if (text.includes("Ready to accept")) resolve(true);
    });
  });
  return isUp ? { url: `redis://127.0.0.1:${port}`, close: () => redis.kill() } : undefined;
}

function firstMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) => reject(new Error(`the service ended with code ${code}`));
    child.once("exit", onExit);
    child.once("message", (message) => {
      child.off("exit", onExit);
      resolve(message as T);
    });
  });
}
