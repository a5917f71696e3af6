import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { type Clock, ErrorReason } from "@depute/core";
import {
  type CryptoEngine,
  type DenialReason,
  parseTime,
  rightfulRevokers,
  type SignedJSONToken,
  type SubContractRule,
  type TokenInput,
  UNTRUSTED_ROOT,
  type VerificationContext,
  type VerifiedBlock,
  VerifiedPrefixes,
  type VerifyResult,
  verifyToken,
} from "@depute/dct";
import { countCpu, fromConnectError, ownHeaders } from "@depute/service";
import type { RevocationState } from "./revocation-state.ts";
import type { AcceptedRoots } from "./root-keys.ts";
import { type Block, blocksOf, readTokenDocument } from "./rules/documents.ts";
import { chainHolds } from "./rules/order.ts";
import { rootRetired } from "./rules/root-key.ts";

/**
 * Timeout of a call to the verifier, in milliseconds. The timeout is short, because a caller waits for the
 * decision.
 */
const TIMEOUT_MS = 2_000;
/** Maximum number of cached lineages. The lineage of a contract is the set of its ancestors, at most 1 KB. */
const MAX_KEPT = 10_000;
/** Maximum number of concurrent reads of lineages. */
const MAX_ASKED = 256;

type Lineage = ReadonlySet<string>;
type Link = { readonly contractId: string };

const NONE: Lineage = new Set();

/**
 * The ancestors of contracts, as the verifier service recorded them. The parent of a stored contract never changes, so
 * the class caches lineages. The class does not cache that a contract is missing, because an issuer may store the
 * contract later.
 */
export class ContractLineages {
  readonly #contracts: Client<typeof ContractService>;
  readonly #maxKept: number;
  /** The cached lineages by contract, least recently used first. */
  readonly #knownLineages = new Map<string, Lineage>();
  readonly #pendingReads = new Map<string, Promise<Lineage>>();

  constructor(verifier: Transport, maxKept = MAX_KEPT) {
    this.#contracts = createClient(ContractService, verifier);
    this.#maxKept = maxKept;
  }

  /** Returns the contracts along one chain, for one decision about that chain. */
  ofChain(): ChainContracts {
    return new ChainContracts(this);
  }

  /** Returns the cached lineage of a contract; undefined if the cache does not have it. */
  cachedLineage(contractId: string): Lineage | undefined {
    const lineage = this.#knownLineages.get(contractId);
    if (lineage !== undefined) this.#keep(contractId, lineage);
    return lineage;
  }

  /**
   * Reads a contract's ancestors; empty for an unknown contract.
   *
   * @throws DeputeError with an error of the verifier service, Error while MAX_ASKED other reads run
   */
  async read(contractId: string): Promise<Lineage> {
    const pendingLineage = this.cachedLineage(contractId) ?? this.#pendingReads.get(contractId);
    if (pendingLineage !== undefined) return pendingLineage;
    if (this.#pendingReads.size >= MAX_ASKED)
      throw new Error("too many contracts are being read; try again later");
    const answer = this.#ask(contractId).finally(() => this.#pendingReads.delete(contractId));
    this.#pendingReads.set(contractId, answer);
    return answer;
  }

  async #ask(id: string): Promise<Lineage> {
    const options = { headers: ownHeaders(""), timeoutMs: TIMEOUT_MS };
    try {
      const lineage = new Set(
        (await this.#contracts.getContractLineage({ contractId: id }, options)).ancestorIds,
      );
      this.#keep(id, lineage);
      return lineage;
    } catch (thrown) {
      const refusal = fromConnectError(thrown);
      if (refusal.reason === ErrorReason.CONTRACT_NOT_FOUND) return NONE;
      throw refusal;
    }
  }

  #keep(contractId: string, lineage: Lineage): void {
    this.#knownLineages.delete(contractId);
    this.#knownLineages.set(contractId, lineage);
    if (this.#knownLineages.size <= this.#maxKept) return;
    const [oldest] = this.#knownLineages.keys();
    if (oldest !== undefined) this.#knownLineages.delete(oldest);
  }
}

/**
 * The contracts along one chain. `isPart` uses only known lineages: it returns false for a contract without a known
 * lineage. If the chain's signatures are valid, Chains then reads the missing lineages with `learn`, and verifies the
 * chain again.
 */
export class ChainContracts {
  readonly #lineages: ContractLineages;
  #learnt: Map<string, Lineage> | undefined;
  #isUnsure = false;

  constructor(lineages: ContractLineages) {
    this.#lineages = lineages;
  }

  /**
   * Whether the contract `child` is a recorded sub-contract of `parent`. The attenuation check of each block uses this
   * rule.
   */
  readonly isPart: SubContractRule = (child, parent) => {
    const lineage = this.#learnt?.get(child) ?? this.#lineages.cachedLineage(child);
    if (lineage === undefined) this.#isUnsure = true;
    return lineage?.has(parent) === true;
  };

  /** Whether `isPart` returned false because a contract's lineage is unknown. */
  get isUnsure(): boolean {
    return this.#isUnsure;
  }

  /** Reads all lineages that `isPart` needs for these blocks. Returns false if a read fails. */
  async learn(blocks: readonly Link[]): Promise<boolean> {
    const parts = blocks.filter(
      ({ contractId }, i) => contractId !== (blocks[i - 1]?.contractId ?? contractId),
    );
    const ids = [...new Set(parts.map(({ contractId }) => contractId))];
    try {
      const lineages = await Promise.all(ids.map((id) => this.#lineages.read(id)));
      this.#learnt = new Map(ids.map((id, i) => [id, lineages[i] ?? NONE]));
      this.#isUnsure = false;
      return true;
    } catch {
      return false;
    }
  }
}

interface ChainsOptions {
  engine: CryptoEngine;
  clock: Clock;
  roots: AcceptedRoots;
  state: RevocationState;
  lineages: ContractLineages;
  /** Maximum accepted lifetime of a token, from issuedAt to expiresAt, in milliseconds. */
  maxLifetimeMs: number;
  /** Maximum time, in milliseconds, by which a token's issuedAt may be ahead of this service's clock. */
  clockSkewMs: number;
  /**
   * Reads the revocations that other replicas have logged. Returns undefined without replicas; see RevocationReader.
   */
  catchUp?: () => Promise<void> | undefined;
}

/**
 * The question about a chain that no caller presents: whether it grants a request and the required capabilities, and
 * whether it is for a contract. Without members, the question is only whether the chain is valid.
 */
type ChainQuestion = Pick<VerificationContext, "request" | "contractId" | "requiredCapabilities">;

/** The members of a verification that depend on how a caller presents the token. */
type PresentationContext = Pick<VerificationContext, "holder" | "spentMicrocents"> & ChainQuestion;

/** The holder and the spend of a verification if no caller presents the chain. */
const BEARER = { holder: "bearer", spentMicrocents: 0 } as const;

/** One verification with all its inputs, so that it can be repeated. */
export interface Verification {
  readonly input: TokenInput;
  readonly context: VerificationContext;
}

/**
 * Verifies chains of blocks. packages/dct checks a chain, and this class adds the platform's revocations to the check.
 */
export class Chains {
  readonly #options: ChainsOptions;
  /** Caches only that signatures are valid. All other checks run each time a token is presented. */
  readonly #verified = new VerifiedPrefixes();

  constructor(options: ChainsOptions) {
    this.#options = options;
  }

  /**
   * Verifies a token.
   *
   * @param isBehind whether a replica has logged revocations that this process has not read
   */
  async decide(
    input: TokenInput,
    presentation: PresentationContext,
    { now, isBehind = false }: { now: number; isBehind?: boolean },
  ): Promise<{ result: VerifyResult; verification: Verification }> {
    const contracts = this.#options.lineages.ofChain();
    const decide = async () => {
      const verification = {
        input,
        context: { ...this.#context(now, contracts, isBehind), ...presentation },
      };
      return { result: await this.#decide(verification, contracts), verification };
    };
    const decision = await decide();
    // Another replica may have created this root key. This process reads the key together with new revocations.
    return isOfUnknownRoot(decision.result) && (await this.#caughtUp()) ? decide() : decision;
  }

  /** Repeats a verification with a changed context. */
  repeat({ input, context }: Verification, changed: Partial<VerificationContext>): VerifyResult {
    return this.#verify(input, { ...context, ...changed });
  }

  /** Checks a chain that no caller presents: whether it is valid now, and whether it satisfies `question`. */
  async check(input: TokenInput, question: ChainQuestion = {}): Promise<VerifyResult> {
    await this.#options.catchUp?.();
    const fullContext = { ...BEARER, ...question };
    const { result } = await this.decide(input, fullContext, { now: this.#options.clock.now() });
    const denial = result.ok ? this.finalDenial(result.token, result.blocks) : undefined;
    return denial === undefined ? result : { ok: false, denial };
  }

  /**
   * Returns the blocks of a chain whose signatures and attenuation are valid, even if the chain is revoked or expired.
   * The ancestors of a block show which principals may revoke it.
   */
  async proven(
    input: TokenInput,
  ): Promise<{ ok: true; blocks: Block[] } | { ok: false; denial: DenialReason }> {
    const { clock, engine } = this.#options;
    const result = await this.#decideUnrevoked(input, clock.now());
    if (!result.ok && !chainHolds(result.denial)) return result;
    const token = result.ok ? result.token : readTokenDocument(input);
    return { ok: true, blocks: token === undefined ? [] : blocksOf(engine, token) };
  }

  /**
   * Returns the blocks and limits of a chain, even if the chain is revoked or expired. The chain must be valid in all
   * other respects.
   */
  async provenLevels(
    input: TokenInput,
  ): Promise<{ ok: true; blocks: VerifiedBlock[] } | { ok: false; denial: DenialReason }> {
    const { clock } = this.#options;
    const token = readTokenDocument(input);
    // Verifies the chain at the token's time of issue, because no valid token has expired at that time.
    const now = parseTime(token?.authority.issuedAt ?? "") ?? clock.now();
    return this.#decideUnrevoked(input, now);
  }

  /**
   * Returns the sub-contract rule for a new chain. Before that, reads the chain's contracts from the verifier service,
   * unless that service does not respond.
   */
  async subContractsOf(blocks: readonly { readonly contractId: string }[]): Promise<SubContractRule> {
    const contracts = this.#options.lineages.ofChain();
    await contracts.learn(blocks);
    return contracts.isPart;
  }

  /**
   * Checks a valid token again, after all waits of the verification. A revocation may have arrived during a wait, or
   * this process's copy of the log may have become too old. Returns the denial; undefined if the token is still valid.
   */
  finalDenial(
    token: SignedJSONToken,
    blocks: readonly Pick<Block, "revocationId">[],
  ): DenialReason | undefined {
    const { clock, state, roots } = this.#options;
    const retireTime = roots.retired(token.authority.issuer);
    if (retireTime !== undefined) return rootRetired(retireTime);
    const isRevoked = blocks.some(({ revocationId }, level) => {
      return state.isRevoked(revocationId, rightfulRevokers(token, level));
    });
    if (isRevoked) return { type: "revoked" };
    if (state.isConflicting) return { type: "revocation_state_conflict" };
    return state.isStale(clock.now()) ? { type: "revocation_state_stale" } : undefined;
  }

  /**
   * Reads the revocations and root keys that other replicas have recorded. Returns false without replicas, and if the
   * read fails.
   */
  async #caughtUp(): Promise<boolean> {
    const catching = this.#options.catchUp?.();
    if (catching === undefined) return false;
    return catching.then(
      () => true,
      () => false,
    );
  }

  #decideUnrevoked(input: TokenInput, now: number): Promise<VerifyResult> {
    const contracts = this.#options.lineages.ofChain();
    const revocations = { isRevoked: () => false };
    // Also accepts retired roots, because the result grants nothing. The result only shows blocks, for revocations,
    // explanations and budgets.
    const trustedRoots = this.#options.roots.everTrusted();
    const context = { ...this.#context(now, contracts), ...BEARER, revocations, trustedRoots };
    return this.#decide({ input, context }, contracts);
  }

  /**
   * Verifies a chain. If the chain's signatures are valid, reads its unknown contracts from the verifier service, and
   * verifies the chain again. A forged token causes no such call.
   */
  async #decide({ input, context }: Verification, contracts: ChainContracts): Promise<VerifyResult> {
    const result = this.#verify(input, context);
    if (result.ok || !contracts.isUnsure) return result;
    const token = readTokenDocument(input);
    if (token === undefined) return result;
    if (await contracts.learn([token.authority, ...token.attenuations])) return this.#verify(input, context);
    const { type, detail = "" } = result.denial;
    return {
      ok: false,
      denial: { type, detail: `${detail}: the verifier service does not respond; try again later` },
    };
  }

  #context(
    now: number,
    { isPart: subContract }: ChainContracts,
    isBehind = false,
  ): Omit<VerificationContext, "holder" | "spentMicrocents"> {
    const { roots, state, maxLifetimeMs, clockSkewMs } = this.#options;
    const trustedRoots = roots.trusted();
    const isRevoked = (id: string, rightful: readonly string[]) => state.isRevoked(id, rightful);
    const revocations = { isRevoked, isStale: () => isBehind };
    return { trustedRoots, now, revocations, maxLifetimeMs, clockSkewMs, subContract };
  }

  #verify(input: TokenInput, context: VerificationContext): VerifyResult {
    const { engine } = this.#options;
    const result = countCpu(() => verifyToken(engine, input, context, { verified: this.#verified }));
    if (!isOfUnknownRoot(result)) return result;
    const retireTime = this.#options.roots.retired(readTokenDocument(input)?.authority.issuer ?? "");
    return retireTime === undefined ? result : { ok: false, denial: rootRetired(retireTime) };
  }
}

/** Whether a token was denied because its root is none of the trusted ones. */
function isOfUnknownRoot(result: VerifyResult): boolean {
  return !result.ok && result.denial.detail === UNTRUSTED_ROOT;
}
