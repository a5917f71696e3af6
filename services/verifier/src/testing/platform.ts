import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DescService, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Client, createClient } from "@connectrpc/connect";
import { createBus } from "@depute/bus";
import { AttestationService } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { LogService } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { ResultService } from "@depute/contracts/depute/verifier/v1/result_service_pb";
import { ReviewService } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { ManualClock, reasonName, systemTimers } from "@depute/core";
import { commonSettings, createLogger, fromConnectError, hostServices, readSettings } from "@depute/service";
import { createGrpcJsTransport } from "@depute/service/testing";
import { toMessage } from "../documents.ts";
import { verifier } from "../index.ts";
import type { TaskContract } from "../rules/documents.ts";
import { type ContractParts, delegator, signedContract, worker } from "./contracts.ts";
import type { FakeRegistry } from "./fake-registry.ts";
import type { FakeTokens } from "./fake-tokens.ts";

/** A verifier behind a real socket, for a client that shares no code with it. Its files live in a folder of its own. */
export async function startPlatform(
  args: readonly string[] = [],
  tokens?: FakeTokens,
  registry?: FakeRegistry,
) {
  const dataDir = mkdtempSync(join(tmpdir(), "depute-verifier-"));
  const credentialsFile = join(dataDir, "credentials.json");
  const secrets = [delegator, worker].map(({ principal: { id } }) => ({
    principal: id,
    sha256: createHash("sha256").update(id).digest("hex"),
  }));
  writeFileSync(credentialsFile, JSON.stringify(secrets));
  const clock = new ManualClock();
  const about = { name: "test" };

  const start = async () => {
    const bus = createBus({
      onError: (error) => {
        throw error;
      },
    });
    const places = ["--data-dir", dataDir, "--credentials-file", credentialsFile, "--verifier-port", "0"];
    const host = await hostServices({
      modules: [
        ...(tokens === undefined ? [] : [{ module: tokens.module, settings: {}, listen: false }]),
        ...(registry === undefined ? [] : [{ module: registry.module, settings: {}, listen: false }]),
        { module: verifier, settings: readSettings(verifier.settings, args, about), listen: true },
      ],
      common: readSettings(commonSettings, places, about),
      bus,
      log: createLogger({ level: "silent", name: "test" }),
      clock,
      timers: systemTimers,
    });
    const transport = createGrpcJsTransport(new URL(host.urls.verifier ?? "").host);
    return {
      transport,
      async stop() {
        transport.close();
        await host.stop();
        await bus.close();
      },
    };
  };
  let running = await start();
  const client = <S extends DescService>(service: S): Client<S> => createClient(service, running.transport);

  return {
    clock,
    /** A contract that the delegator signed, and that the verifier has. */
    async agree(parts: ContractParts = {}): Promise<TaskContract> {
      const contract = signedContract(parts);
      await client(ContractService).createContract({ contract: message(contract) });
      return contract;
    },
    get contracts() {
      return client(ContractService);
    },
    get verification() {
      return client(VerificationService);
    },
    get attestations() {
      return client(AttestationService);
    },
    get results() {
      return client(ResultService);
    },
    get reviews() {
      return client(ReviewService);
    },
    get log() {
      return client(LogService);
    },
    /** Ends the service and starts it again on the same files. */
    async restart() {
      await running.stop();
      running = await start();
    },
    async stop() {
      await running.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export type Platform = Awaited<ReturnType<typeof startPlatform>>;

/** Call options of a caller with credentials of its own. */
export function as({ principal }: { principal: { id: string } }) {
  return { headers: { authorization: `Bearer ${principal.id}` } };
}

export function message(contract: TaskContract) {
  return toMessage("contract", contract);
}

export function value(json: JsonValue): Value {
  return fromJson(ValueSchema, json);
}

/** How a call that has to fail was refused. */
export async function refusal(call: Promise<unknown>) {
  const answer = await call.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("value" in answer) throw new Error("the call was not refused");
  const { reason, metadata, violations } = fromConnectError(answer.error);
  return { reason: reasonName(reason), metadata, fields: violations.map(({ field }) => field) };
}
