import {
  isPrincipal,
  isTerminal,
  objectsOf,
  type Party,
  partyOf,
  type Session,
  type SessionObject,
} from "./session.ts";

/** What came of a session for one agent, as another saw it. (ASP "Trust Implications") */
export interface Outcome {
  /** Whom it is about. */
  readonly agentId: string;
  /** Who saw it: trust is kept for each pair. */
  readonly counterpartId: string;
  readonly result: "completed" | "timed_out" | "fulfilled" | "breached" | "paid";
  /** Whether it rests on escrow that was held, and released or forfeited. */
  readonly staked: boolean;
}

/** Whether escrow of a commitment was at stake: it was held, and did not go back. */
function wasAtStake({ escrow }: SessionObject): boolean {
  return (
    escrow !== undefined && escrow.amount > 0 && (escrow.state === "released" || escrow.state === "forfeited")
  );
}

/**
 * What a session that has ended says of those who took part: between the two parties, and between a delegate that reported
 * and who brought it in. A session that was silent, rejected or withdrawn says nothing against anybody.
 */
export function outcomesOf(session: Session): Outcome[] {
  const { state, end, parties } = session;
  if (!isTerminal(state)) return [];
  const [first, second] = parties.filter(isPrincipal);
  if (first === undefined || second === undefined) return [];
  if (end === "invitation_timeout") {
    const late = parties.filter((party) => isPrincipal(party) && !party.introduced);
    // An invitation without an answer is the invited one's; later each has to introduce itself.
    const isUnanswered = second.presence === "invited";
    return (isUnanswered ? [second] : late).map((party) =>
      about(party, party === first ? second : first, "timed_out", false),
    );
  }
  if (end !== "closed" && end !== "close_grace") return fulfilments(session, first, second);
  const staked = objectsOf(session, "commitment").some(wasAtStake);
  return [
    about(first, second, "completed", staked),
    about(second, first, "completed", staked),
    ...delegations(session, staked),
    ...fulfilments(session, first, second),
  ];
}

function about(
  { agentId }: Pick<Party, "agentId">,
  counterpart: Pick<Party, "agentId">,
  result: Outcome["result"],
  staked: boolean,
): Outcome {
  return { agentId, counterpartId: counterpart.agentId, result, staked };
}

function delegations(session: Session, staked: boolean): Outcome[] {
  return objectsOf(session, "delegation").flatMap(({ author, target, result }) =>
    result === undefined || target === undefined
      ? []
      : [
          about({ agentId: target }, { agentId: author }, "completed", staked),
          about({ agentId: author }, { agentId: target }, "completed", staked),
        ],
  );
}

/** One for each side, whatever its obligations: a breach outweighs what else was fulfilled. */
function fulfilments(session: Session, first: Party, second: Party): Outcome[] {
  const outcomes: Outcome[] = [];
  for (const commitment of objectsOf(session, "commitment")) {
    const { author, obligations = [], escrow } = commitment;
    const staked = wasAtStake(commitment);
    for (const [party, other] of [
      [first, second],
      [second, first],
    ] as const) {
      const own = obligations.filter(({ party: owes }) => partyOf(session, owes)?.side === party.side);
      const isContested = own.some(({ status }) => status === "refused" || status === "overdue");
      const isDone = own.length > 0 && own.every(({ status }) => status === "confirmed");
      if (isContested) outcomes.push(about(party, other, "breached", staked));
      // What was said to be done and never contested counts as done.
      else if (isDone || (escrow?.state === "forfeited" && author !== party.agentId)) {
        outcomes.push(about(party, other, "fulfilled", staked));
      }
      if (author === party.agentId && escrow?.state === "released")
        outcomes.push(about(party, other, "paid", staked));
    }
  }
  return outcomes;
}
