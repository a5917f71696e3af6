import { create } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { DISPUTE_SEVERITY, type Outcome, outcomesOf, type Session } from "@depute/asp";
import {
  type Evidence,
  EvidenceSchema,
  SessionResult,
  TrustService,
} from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { ErrorReason } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { fromConnectError, ownHeaders } from "@depute/service";

const RESULTS: Readonly<Record<Outcome["result"], SessionResult>> = {
  completed: SessionResult.COMPLETED,
  timed_out: SessionResult.TIMED_OUT,
  fulfilled: SessionResult.FULFILLED,
  breached: SessionResult.BREACHED,
  paid: SessionResult.PAID,
};

/**
 * The severity of a breach: an overdue obligation, or a fulfilment that the counterparty refused. The severity is
 * fixed, because the platform does not know the damage.
 */
const BREACH_SEVERITY = DISPUTE_SEVERITY["fulfillment-mismatch"];

/** Errors that a repeated report would get again. */
const FINAL: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.INVALID_REQUEST,
  ErrorReason.AGENT_NOT_FOUND,
  ErrorReason.CALLER_NOT_ALLOWED,
  ErrorReason.EVIDENCE_EXISTS,
  ErrorReason.UNKNOWN_METHOD,
]);

/**
 * Returns the evidence about the participants of an ended session, for the registry: all outcomes, then the ratings.
 *
 * @param ids the participants' ids in the registry, by URI
 */
export function evidenceOfSession(session: Session, ids: ReadonlyMap<string, string>): Evidence[] {
  const registeredId = (uri: string) => ids.get(uri) ?? "";
  const outcomes = outcomesOf(session).map(({ agentId, counterpartId, result, staked }) =>
    create(EvidenceSchema, {
      agentId: registeredId(agentId),
      counterpartAgentId: registeredId(counterpartId),
      kind: {
        case: "session",
        value: {
          sessionId: session.sessionId,
          result: RESULTS[result],
          severity: result === "breached" ? BREACH_SEVERITY : 0,
          staked,
        },
      },
    }),
  );
  const ratings = session.ratings.map(({ from, to, stars }) =>
    create(EvidenceSchema, {
      agentId: registeredId(to),
      counterpartAgentId: registeredId(from),
      kind: { case: "rating", value: { reference: session.sessionId, stars } },
    }),
  );
  return [...outcomes, ...ratings];
}

/**
 * Reports outcomes of sessions to the registry. Evidence ids derive from the session and the index, so a repeated
 * report counts once.
 */
export class OutcomeReporter {
  readonly #trust: Client<typeof TrustService>;

  constructor(registry: Transport) {
    this.#trust = createClient(TrustService, registry);
  }

  /**
   * Reports the outcomes of one session.
   *
   * @throws DeputeError if a later report may succeed, for example if the registry does not answer; the caller must
   * then repeat the report
   */
  async report(session: Session, ids: ReadonlyMap<string, string>): Promise<void> {
    for (const [index, evidence] of evidenceOfSession(session, ids).entries()) {
      const digest = sha256Hex(`${session.sessionId}/${index}`);
      const request = { evidenceId: `asp_${digest}`, evidence };
      await this.#trust.recordEvidence(request, { headers: ownHeaders("") }).catch((thrown: unknown) => {
        const refusal = fromConnectError(thrown);
        // A final error drops the evidence, for example if the rated agent is unknown.
        if (!FINAL.has(refusal.reason)) throw refusal;
      });
    }
  }
}
