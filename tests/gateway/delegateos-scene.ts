import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { TaskContractSchema } from "@depute/contracts/delegateos/v0/contract_pb";
import {
  attenuateToken,
  generateKeypair,
  type Keypair,
  newId,
  parseToken,
  revocationIds,
  type SignedJSONToken,
  serialiseToken,
  signObject,
} from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { decodeValid } from "@depute/wire";
import { call, introduce, type Json, result, startPlatform, type TestPlatform } from "./platform.ts";

const FORMAT = "delegateos-sjt-v1";

/** A delegation: its contract, its token, and the revocation ids of the token's blocks, the root first. */
export interface Delegated {
  readonly contract: Json;
  readonly dct: string;
  readonly delegationId: string;
  readonly blocks: readonly string[];
}

/**
 * How an attestation differs from a success that the worker reports: its signer, and members of its result and of
 * itself.
 */
export interface Claim {
  readonly by?: Keypair;
  readonly result?: object;
  readonly about?: object;
}

/** The parts of a test platform that the scene uses. */
export type Stage = Pick<TestPlatform, "clients" | "post">;

/** Starts a platform in this process with an adjustable clock, and the scene on it. */
export async function delegateosScene() {
  let aheadMs = 0;
  const now = () => Date.now() + aheadMs;
  const platform = await startPlatform([], { clock: { now, monotonic: () => performance.now() + aheadMs } });
  return {
    platform,
    ...(await delegateosCast(() => platform, now)),
    /** Advances the platform's clock. */
    advance(ms: number) {
      aheadMs += ms;
    },
  };
}

/**
 * Returns a delegator, its worker and a second worker, `below`, to which the worker delegates, with their calls.
 * After a restart, `stage` may return another platform.
 */
export async function delegateosCast(stage: () => Stage, now: () => number) {
  const keypair = () => generateKeypair(engine);
  const [delegator, worker, below, stranger] = [keypair(), keypair(), keypair(), keypair()];
  await introduce(stage(), "worker", [], worker.principal.id);
  await introduce(stage(), "below", [], below.principal.id);

  function contractOf(): Json {
    const body: Json = {
      ...{ id: newId("ct"), version: "0.1", issuer: delegator.principal.id },
      createdAt: new Date(now() - 1000).toISOString(),
      task: {
        ...{ title: "Count", description: "Count to three.", inputs: {} },
        outputSchema: { type: "object", required: ["count"] },
      },
      verification: { method: "schema_match" },
      constraints: {
        ...{ maxBudgetMicrocents: 1000, maxChainDepth: 3, requiredCapabilities: ["llm:classify"] },
        deadline: new Date(now() + 7_200_000).toISOString(),
      },
    };
    return signObject(engine, "contract", body, delegator);
  }

  /**
   * Creates a token of the platform for the worker. For another holder, the worker attenuates it without the platform.
   */
  async function delegation(to: Keypair = worker): Promise<Delegated> {
    const contract = contractOf();
    const minted = await stage().clients.tokens.mintToken({
      ...{ requestId: crypto.randomUUID(), delegatee: worker.principal.id, contractId: contract.id },
      capabilities: [{ namespace: "llm", action: "classify", resource: "**" }],
      ...{ maxChainDepth: 2, maxBudgetMicrocents: 1000n, lifetime: durationFromMs(3_600_000) },
    });
    const root = read(minted.token?.token ?? "");
    const token = to === worker ? root : attenuateToken(engine, root, { delegatee: to.principal.id }, worker);
    const { delegationId } = token.attenuations.at(-1) ?? token.authority;
    return { contract, dct: serialiseToken(token).token, delegationId, blocks: revocationIds(engine, token) };
  }

  function delegate({ contract, dct, delegationId, blocks }: Delegated): Promise<Json> {
    const above = blocks.length > 1 ? read(dct).authority.delegationId : "del_000000000000";
    const params = { contract, dct, dctFormat: FORMAT, delegationId, parentDelegationId: above };
    return result(stage().post("/delegateos", call("delegateos/delegate", params)));
  }

  /** Creates a delegation with a task. */
  async function handedOver(to: Keypair = worker): Promise<Delegated> {
    const delegated = await delegation(to);
    const { accepted, details } = await delegate(delegated);
    if (accepted !== true) throw new Error(`turned down: ${details}`);
    return delegated;
  }

  /** Creates a delegation with a stored contract and without a task. */
  async function withoutTask(): Promise<Delegated> {
    const delegated = await delegation();
    const decoded = decodeValid(TaskContractSchema, delegated.contract);
    if (!decoded.ok) throw new Error(decoded.error.message);
    await stage().clients.contracts.createContract({ contract: decoded.message });
    return delegated;
  }

  /** Builds the parameters of delegateos/complete. */
  function attested(of: Delegated, { by = worker, result: more = {}, about = {} }: Claim = {}) {
    const body: Json = {
      ...{ id: newId("att"), version: "0.1", contractId: of.contract.id, delegationId: of.delegationId },
      ...{ principal: by.principal.id, createdAt: new Date(now()).toISOString(), type: "completion" },
      result: defined({ success: true, output: { count: 3 }, costMicrocents: 500, durationMs: 10, ...more }),
      childAttestations: [],
      ...about,
    };
    const attestation: Json = signObject(engine, "attestation", body, by);
    return { delegationId: attestation.delegationId as string, attestation };
  }

  /** Reads the platform's state of a delegation, of its task and of an attestation. */
  async function state({ delegationId }: Delegated, { attestation }: { attestation: Json }) {
    const { delegations, tasks, attestations } = stage().clients;
    const { delegation } = await delegations.getDelegation({ delegationId });
    const name = { externalId: delegationId };
    const task = await tasks.getTask(name).then(
      (answer) => answer.task?.status,
      () => undefined,
    );
    const isStored = await attestations.getAttestation({ attestationId: attestation.id }).then(
      () => true,
      () => false,
    );
    return { delegation: delegation?.status, task, isStored };
  }

  async function taskOf({ delegationId }: Delegated) {
    const { task } = await stage().clients.tasks.getTask({
      externalId: delegationId,
    });
    if (task === undefined) throw new Error("there is no task");
    return task;
  }

  return {
    ...{ delegator, worker, below, stranger },
    ...{ delegation, handedOver, withoutTask, attested, state, taskOf },
  };
}

export type DelegateosScene = Awaited<ReturnType<typeof delegateosScene>>;

/** Drops undefined members, because signed documents have none. */
function defined(members: object): object {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

function read(dct: string): SignedJSONToken {
  const parsed = parseToken({ token: dct, format: FORMAT });
  if (!parsed.ok) throw new Error(parsed.denial.type);
  return parsed.token;
}
