import type { Clock } from "@depute/core";
import {
  type CryptoEngine,
  type DenialReason,
  parseTime,
  rightfulRevokers,
  type SignedJSONToken,
  type SubContractRule,
  type TokenInput,
  type VerificationContext,
  type VerifiedBlock,
  VerifiedPrefixes,
  type VerifyResult,
  verifyToken,
} from "@depute/dct";
import type { ChainContracts, ContractLineages } from "./contract-lineages.ts";
import type { RevocationState } from "./revocation-state.ts";
import { type Block, blocksOf, parsed } from "./rules/blocks.ts";
import { chainHolds } from "./rules/order.ts";

interface ChainsOptions {
  engine: CryptoEngine;
  clock: Clock;
  trustedRoots: ReadonlySet<string>;
  state: RevocationState;
  lineages: ContractLineages;
  /** Milliseconds from issuedAt to expiresAt of a token that is accepted. */
  maxLifetimeMs: number;
  /** Milliseconds that issuedAt may lie ahead of the clock. */
  clockSkewMs: number;
}

/** What is asked of a chain where nobody presents it: nothing by itself. */
type Question = Pick<VerificationContext, "request" | "contractId" | "requiredCapabilities">;

/** What a presentation adds to what is the same for every verification. */
type Asked = Pick<VerificationContext, "holder" | "spentMicrocents"> & Question;

/** Of a chain that nobody presents. */
const BEARER = { holder: "bearer", spentMicrocents: 0 } as const;

/** One verification: everything that it looks at, so that it can be repeated. */
export interface Verification {
  readonly input: TokenInput;
  readonly context: VerificationContext;
}

/** What chains of blocks prove, with packages/dct as the judge of bytes and this service's memory of revocations. */
export class Chains {
  readonly #options: ChainsOptions;
  /** Signatures that were found to hold, and nothing else: every other question is asked at every use. */
  readonly #verified = new VerifiedPrefixes();

  constructor(options: ChainsOptions) {
    this.#options = options;
  }

  /**
   * Verifies a token.
   *
   * @param isBehind whether a revocation that the decision has to take into account is not known here
   */
  async decide(
    input: TokenInput,
    asked: Asked,
    { now, isBehind = false }: { now: number; isBehind?: boolean },
  ): Promise<{ result: VerifyResult; verification: Verification }> {
    const contracts = this.#options.lineages.ofChain();
    const verification = { input, context: { ...this.#context(now, contracts, isBehind), ...asked } };
    return { result: await this.#decide(verification, contracts), verification };
  }

  /** Verifies once more, with what is different now. */
  repeat({ input, context }: Verification, changed: Partial<VerificationContext>): VerifyResult {
    return this.#verify(input, { ...context, ...changed });
  }

  /** Whether a chain is sound now and answers a question, where nobody presents it. */
  async check(input: TokenInput, question: Question = {}): Promise<VerifyResult> {
    const asked = { ...BEARER, ...question };
    const { result } = await this.decide(input, asked, { now: this.#options.clock.now() });
    const denial = result.ok ? this.lastLook(result.token, result.blocks) : undefined;
    return denial === undefined ? result : { ok: false, denial };
  }

  /**
   * The blocks of a chain whose signatures hold and whose blocks narrow, revoked and expired or not; what it proves is
   * who may revoke what.
   */
  async proven(
    input: TokenInput,
  ): Promise<{ ok: true; blocks: Block[] } | { ok: false; denial: DenialReason }> {
    const { clock, engine } = this.#options;
    const result = await this.#decideUnrevoked(input, clock.now());
    if (!result.ok && !chainHolds(result.denial)) return result;
    const token = result.ok ? result.token : parsed(input);
    return { ok: true, blocks: token === undefined ? [] : blocksOf(engine, token) };
  }

  /** The blocks of a chain that holds, or would if it were neither revoked nor expired, with their limits. */
  async provenLevels(
    input: TokenInput,
  ): Promise<{ ok: true; blocks: VerifiedBlock[] } | { ok: false; denial: DenialReason }> {
    const { clock } = this.#options;
    const token = parsed(input);
    // At the moment in which it was issued no sound token is over.
    const now = parseTime(token?.authority.issuedAt ?? "") ?? clock.now();
    return this.#decideUnrevoked(input, now);
  }

  /** The rule for a chain that is about to be made: the contracts along it are then known, if the verifier answers. */
  async subContractsOf(blocks: readonly { readonly contractId: string }[]): Promise<SubContractRule> {
    const contracts = this.#options.lineages.ofChain();
    await contracts.learn(blocks);
    return contracts.isPart;
  }

  /** What has become of a token that was sound: revoked meanwhile, or by now nobody knows. */
  lastLook(token: SignedJSONToken, blocks: readonly Pick<Block, "revocationId">[]): DenialReason | undefined {
    const { clock, state } = this.#options;
    const isRevoked = blocks.some(({ revocationId }, level) => {
      return state.isRevoked(revocationId, rightfulRevokers(token, level));
    });
    if (isRevoked) return { type: "revoked" };
    if (state.isConflicting) return { type: "revocation_state_conflict" };
    return state.isStale(clock.now()) ? { type: "revocation_state_stale" } : undefined;
  }

  #decideUnrevoked(input: TokenInput, now: number): Promise<VerifyResult> {
    const contracts = this.#options.lineages.ofChain();
    const revocations = { isRevoked: () => false };
    const context = { ...this.#context(now, contracts), ...BEARER, revocations };
    return this.#decide({ input, context }, contracts);
  }

  /**
   * Verifies, and asks the verifier where the chain goes on in another contract whose lineage is not known here. The
   * signatures hold by then, so that nobody makes it ask with tokens that he made up.
   */
  async #decide({ input, context }: Verification, contracts: ChainContracts): Promise<VerifyResult> {
    const result = this.#verify(input, context);
    if (result.ok || !contracts.isUnsure) return result;
    const token = parsed(input);
    if (token === undefined) return result;
    if (await contracts.learn([token.authority, ...token.attenuations])) return this.#verify(input, context);
    const { type, detail = "" } = result.denial;
    return { ok: false, denial: { type, detail: `${detail}: the verifier does not answer` } };
  }

  #context(
    now: number,
    { isPart: subContract }: ChainContracts,
    isBehind = false,
  ): Omit<VerificationContext, "holder" | "spentMicrocents"> {
    const { trustedRoots, state, maxLifetimeMs, clockSkewMs } = this.#options;
    const isRevoked = (id: string, rightful: readonly string[]) => state.isRevoked(id, rightful);
    const revocations = { isRevoked, isStale: () => isBehind };
    return { trustedRoots, now, revocations, maxLifetimeMs, clockSkewMs, subContract };
  }

  #verify(input: TokenInput, context: VerificationContext): VerifyResult {
    return verifyToken(this.#options.engine, input, context, { verified: this.#verified });
  }
}
