import { ConformanceLevel } from "@depute/contracts/asp/v0/asp_common_pb";
import { Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { Refused } from "./refusal.ts";
import { isPrincipal, type Party, type Session } from "./session.ts";
import type { MessageBody } from "./subject.ts";
import type { Subject } from "./table.ts";

/** The performatives that agents of the minimal level support. (ASP specification "Conformance") */
const MINIMAL: ReadonlySet<Performative> = new Set([
  Performative.INFORM,
  Performative.QUERY,
  Performative.CLOSE,
]);

/** Every session begins with messages about these subjects, so agents of every level may send and receive them. */
const BEGINNING: ReadonlySet<Subject> = new Set<Subject>(["invitation", "identity"]);

/** Whether an agent of this level supports a performative. An agent without a declared level supports all. */
export function speaks(level: ConformanceLevel | undefined, performative: Performative): boolean {
  return level !== ConformanceLevel.MINIMAL || MINIMAL.has(performative);
}

/**
 * Checks a message against the conformance levels that the agents' cards declare. The sender and both parties must
 * support the message, because all participants receive it. Ratings need the full level, because they belong to trust
 * scoring. ASP lists only the contents of each level; the remaining rules are Depute's choice.
 *
 * @throws Refused not_conformant
 */
export function requireConformance(
  { parties }: Session,
  sender: Party,
  performative: Performative,
  subject: Subject,
  body: MessageBody,
): void {
  if (BEGINNING.has(subject)) return;
  const mute = [sender, ...parties.filter(isPrincipal)].find(
    ({ conformance }) => !speaks(conformance, performative),
  );
  if (mute !== undefined) {
    throw new Refused(
      "not_conformant",
      `${mute.agentId} declares a conformance level that does not include this performative`,
    );
  }
  const rates = body.case === "close" && (body.value.ratings?.values.length ?? 0) > 0;
  const { conformance = ConformanceLevel.FULL } = sender;
  if (rates && conformance !== ConformanceLevel.FULL) {
    throw new Refused("not_conformant", "ratings require the full conformance level");
  }
}
