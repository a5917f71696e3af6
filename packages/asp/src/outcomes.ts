import {
  isPrincipal,
  isTerminal,
  objectsOf,
  type Party,
  partyOf,
  type Session,
  type SessionObject,
} from "./session.ts";

/** One outcome of a session for one agent, as a counterpart observed it. (ASP "Trust Implications") */
export interface Outcome {
  /** The agent whose work was observed. */
  readonly agentId: string;
  /** The agent that observed the outcome. Trust depends on the pair of observed agent and observer. */
  readonly counterpartId: string;
  readonly result: "completed" | "timed_out" | "fulfilled" | "breached" | "paid";
  /** Whether escrow was held and then released or forfeited. */
  readonly staked: boolean;
}

/** Whether a commitment's escrow was held and not refunded. */
function wasAtStake({ escrow }: SessionObject): boolean {
  return (
    escrow !== undefined && escrow.amount > 0 && (escrow.state === "released" || escrow.state === "forfeited")
  );
}

/**
 * Returns the outcomes of an ended session for its participants. Each outcome is about two agents: the two parties, or
 * a delegate that reported and the party that brought it in. Rejection, withdrawal, and silence after the introductions
 * have no negative outcome.
 */
export function outcomesOf(session: Session): Outcome[] {
  const { state, end, parties } = session;
  if (!isTerminal(state)) return [];
  const [first, second] = parties.filter(isPrincipal);
  if (first === undefined || second === undefined) return [];
  if (end === "invitation_timeout") {
    const late = parties.filter((party) => isPrincipal(party) && !party.introduced);
    // An unanswered invitation counts against the invited agent alone. After the answer each party must introduce
    // itself, so the timeout counts against each party that did not.
    const isUnanswered = second.presence === "invited";
    return (isUnanswered ? [second] : late).map((party) =>
      obligationsAbout(party, party === first ? second : first, "timed_out", false),
    );
  }
  if (end !== "closed" && end !== "close_grace") return fulfilments(session, first, second);
  const staked = objectsOf(session, "commitment").some(wasAtStake);
  return [
    obligationsAbout(first, second, "completed", staked),
    obligationsAbout(second, first, "completed", staked),
    ...delegations(session, staked),
    ...fulfilments(session, first, second),
  ];
}

function obligationsAbout(
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
          obligationsAbout({ agentId: target }, { agentId: author }, "completed", staked),
          obligationsAbout({ agentId: author }, { agentId: target }, "completed", staked),
        ],
  );
}

/**
 * Returns the outcomes of all commitments. For each commitment and side, at most one outcome is about obligations,
 * however many the side has. One contested or overdue obligation makes this outcome `breached`. Released escrow adds
 * the outcome `paid` for the author.
 */
function fulfilments(session: Session, first: Party, second: Party): Outcome[] {
  const outcomes: Outcome[] = [];
  for (const commitment of objectsOf(session, "commitment")) {
    const { author, obligations = [], escrow } = commitment;
    const staked = wasAtStake(commitment);
    for (const [party, other] of [
      [first, second],
      [second, first],
    ] as const) {
      const ownObligations = obligations.filter(
        ({ party: owes }) => partyOf(session, owes)?.side === party.side,
      );
      const isContested = ownObligations.some(({ status }) => status === "refused" || status === "overdue");
      const isDone =
        ownObligations.length > 0 && ownObligations.every(({ status }) => status === "confirmed");
      if (isContested) outcomes.push(obligationsAbout(party, other, "breached", staked));
      // The author forfeits the escrow only if the author contested none of the other side's claims. So these claims
      // count as fulfilled.
      else if (isDone || (escrow?.state === "forfeited" && author !== party.agentId)) {
        outcomes.push(obligationsAbout(party, other, "fulfilled", staked));
      }
      if (author === party.agentId && escrow?.state === "released")
        outcomes.push(obligationsAbout(party, other, "paid", staked));
    }
  }
  return outcomes;
}
