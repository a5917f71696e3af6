import type { Client } from "@connectrpc/connect";
import type { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import type { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import type { Clock } from "@depute/core";
import type { CryptoEngine, Keypair } from "@depute/dct";
import type { Authority } from "@depute/service";
import type { Store } from "@depute/store";
import type { Checker } from "./checker/checker.ts";
import type { ContractBook } from "./contract-book.ts";
import type { CheckFunctionRegistry } from "./rules/check-registry.ts";
import type { TransparencyLog } from "./transparency-log.ts";

/** What the handlers work with. */
export interface Verifier {
  readonly store: Store;
  readonly contracts: ContractBook;
  readonly checker: Checker;
  /** The checks that contracts may name; they run in the checker. */
  readonly checks: CheckFunctionRegistry;
  readonly engine: CryptoEngine;
  /** The verifier's own, for what it signs. */
  readonly keypair: Keypair;
  /** Has a leaf for everything that the verifier vouches for. */
  readonly log: TransparencyLog;
  readonly tokens: Client<typeof TokenService>;
  readonly revocations: Client<typeof RevocationService>;
  readonly authority: Authority;
  readonly clock: Clock;
}
