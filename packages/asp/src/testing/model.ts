import type { JsonObject } from "@bufbuild/protobuf";
import { Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { rowFor, type Subject } from "../table.ts";
import { type Actor, identity, proposal } from "./stage.ts";

export type Verb = keyof typeof Performative;

/** One thing that somebody tries. */
export interface Attempt {
  readonly who: number;
  readonly verb: Verb;
  /** Picks among the objects that there are. */
  readonly pick: number;
  /** Picks a variant of the verb. */
  readonly variant: number;
}

interface Thing {
  readonly id: string;
  readonly kind: Subject;
  readonly side: number;
  readonly author: number;
  readonly target?: number;
  /** What a question asks about. */
  readonly about?: string;
  status: "open" | "accepted" | "reported" | "done";
  claimedBy?: number | undefined;
}

interface Member {
  side: number;
  delegate: boolean;
  full: boolean;
  presence: "invited" | "active" | "left";
  introduced: boolean;
  closed: boolean;
}

/** What is tried, as a message's body, with what it means. */
export interface Meaning {
  readonly body: JsonObject;
  readonly recipient?: string;
  readonly subject: Subject;
  readonly thing?: Thing | undefined;
  /** False where the reference names nothing that awaits an answer. */
  readonly isOpen: boolean;
  /** The agent that a DELEGATE brings in. */
  readonly target?: number;
}

const { IDLE, CONVERSING, ESCALATED } = SessionState;

/** A session as simple as it can be told: no hashes, no time, no limits; the table is the only law. */
export class Model {
  state: SessionState = IDLE;
  #returnsTo: SessionState = CONVERSING;
  #accepted = false;
  #closing = false;
  #count = 0;
  readonly members = new Map<number, Member>();
  readonly things: Thing[] = [];
  readonly #cast: readonly Actor[];

  constructor(cast: readonly Actor[]) {
    this.#cast = cast;
  }

  /** What an attempt means at this moment. */
  read({ who, verb, pick, variant }: Attempt): Meaning {
    const id = `o${this.#count++}`;
    const thing = this.things.length === 0 ? undefined : this.things[pick % this.things.length];
    const referenceId = thing?.id ?? "nothing";
    const plain = (body: JsonObject, subject: Subject): Meaning => ({
      body: { ...body },
      subject,
      isOpen: true,
    });
    switch (verb) {
      case "PROPOSE":
        if (this.state === IDLE || variant % 5 === 0) {
          const recipient = this.#cast[who === 0 ? 1 : 0]?.agentId ?? "";
          return {
            ...plain({ proposalId: id, type: "session-invitation", subject: "s" }, "invitation"),
            recipient,
          };
        }
        return plain(proposal(id), "proposal");
      case "INFORM": {
        if (variant % 4 === 0) return plain(identity(this.#cast[who] as Actor), "identity");
        if (variant % 4 === 1) {
          const open = this.things.find(({ kind, status }) => kind === "escalation" && status === "open");
          return { ...plain({ informType: "resolution" }, "resolution"), thing: open };
        }
        return { ...plain({ informType: "result", references: [referenceId] }, "talk"), thing };
      }
      case "OBSERVE":
        return plain({}, "talk");
      case "QUERY":
        return plain({ queryId: id }, "question");
      case "CLARIFY":
        return {
          body: { referenceId, questions: [{ question: "?" }] },
          subject: "question",
          isOpen: thing?.status === "open" || thing?.status === "accepted",
        };
      case "COMMIT":
        return plain(
          { commitmentId: id, escrow: { amount: 1, currency: "USD", releaseCondition: "c" } },
          "commitment",
        );
      case "DELEGATE": {
        const target = 2 + (variant % Math.max(1, this.#cast.length - 2));
        const targetAgent = (this.#cast[target] ?? this.#cast[0])?.agentId ?? "";
        const authority = variant % 2 === 0 ? "full" : "advisory";
        return { ...plain({ delegationId: id, targetAgent, scope: "s", authority }, "delegation"), target };
      }
      case "ESCALATE":
        return plain({}, "escalation");
      case "CLOSE":
        return plain({}, "session");
      default: {
        const isWithdrawal = verb === "WITHDRAW";
        const runs = thing?.kind === "delegation" && thing.status !== "done" && isWithdrawal;
        const isFulfilment = thing?.kind === "commitment" && thing.status === "accepted";
        return {
          body: { referenceId, ...(verb === "COUNTER" ? { proposalId: id } : {}) },
          subject: isFulfilment ? "fulfilment" : (thing?.kind ?? "talk"),
          thing,
          isOpen: thing?.status === "open" || runs || isFulfilment,
        };
      }
    }
  }

  /** Whether the table allows it. */
  allows({ who, verb }: Attempt, { subject, thing, isOpen, target }: Meaning): boolean {
    const row = rowFor(Performative[verb], subject);
    if (row === undefined || !row.moves.has(this.state) || !isOpen) return false;
    if (row.by.includes("newcomer")) return true;
    const member = this.members.get(who);
    if (member === undefined || member.presence === "left" || member.closed) return false;
    if (member.presence === "invited" && subject !== "invitation" && subject !== "delegation") return false;
    if (this.#closing && !row.whenClosing) return false;
    const faces = thing !== undefined && thing.side !== member.side;
    const can = {
      principal: !member.delegate,
      participant: true,
      addressee: !member.delegate && faces,
      deputy: member.full && faces,
      representative: member.full,
      author: thing?.author === who,
      target: thing?.target === who,
      newcomer: false,
    };
    if (!row.by.some((actor) => can[actor])) return false;
    if (subject === "identity") return this.#accepted && !member.introduced;
    if (subject === "fulfilment") return thing?.claimedBy !== undefined && thing.claimedBy !== member.side;
    if (verb === "DELEGATE" && target !== undefined) {
      const before = this.members.get(target);
      return target < this.#cast.length && (before === undefined || before.presence === "left");
    }
    return true;
  }

  /** Does what is allowed; `id` is what the message opens, if it gives it no id of its own. */
  apply({ who, verb }: Attempt, meaning: Meaning, messageId: string): void {
    const { subject, thing, body, target } = meaning;
    const row = rowFor(Performative[verb], subject);
    const next = row?.moves.get(this.state) ?? "stay";
    const me = this.members.get(who) ?? this.#join(who, who, "active");
    const given = body.proposalId ?? body.queryId ?? body.commitmentId ?? body.delegationId ?? messageId;
    const open = (kind: Subject, more: Partial<Thing> = {}) =>
      this.things.push({ id: String(given), kind, side: me.side, author: who, status: "open", ...more });
    if (verb === "ACCEPT" && thing !== undefined) this.#accept(thing, me);
    else if (verb === "REJECT" && thing !== undefined && subject === "fulfilment")
      thing.claimedBy = undefined;
    else if (["REJECT", "COUNTER", "WITHDRAW"].includes(verb) && thing !== undefined) {
      thing.status = "done";
      if (thing.target !== undefined) this.#leave(thing.target);
    }
    if (subject === "identity") me.introduced = true;
    if (subject === "resolution" && thing !== undefined) thing.status = "done";
    if (subject === "talk" && verb === "INFORM" && thing !== undefined) this.#inform(thing, who, me, body);
    if (verb === "PROPOSE" || verb === "COMMIT" || verb === "ESCALATE") open(subject);
    if (verb === "COUNTER") open(subject === "invitation" ? "invitation" : "proposal");
    if (verb === "QUERY") open("question");
    if (verb === "CLARIFY") open("question", { about: String(body.referenceId) });
    if (verb === "PROPOSE" && subject === "invitation")
      this.#join(who === 0 ? 1 : 0, who === 0 ? 1 : 0, "invited");
    if (verb === "DELEGATE" && target !== undefined) {
      Object.assign(this.#join(target, me.side, "invited"), {
        delegate: true,
        full: body.authority === "full",
      });
      open("delegation", { target });
    }
    if (verb === "CLOSE") {
      if (me.delegate) this.#leave(who);
      else this.#closing = true;
      me.closed = true;
    }
    this.#move(next, row?.both ?? false, verb);
  }

  #accept(thing: Thing, me: Member): void {
    if (thing.kind === "invitation") {
      this.#accepted = true;
      for (const member of this.members.values()) member.presence = "active";
    }
    if (thing.kind === "delegation") me.presence = "active";
    thing.status = thing.claimedBy === undefined ? "accepted" : "done";
  }

  #inform(thing: Thing, who: number, me: Member, { references }: JsonObject): void {
    const [named] = references as [string];
    for (const question of this.things) {
      const isMeant = question.id === named || question.about === named;
      if (question.kind === "question" && isMeant && question.author !== who) question.status = "done";
    }
    if (thing.kind === "delegation" && thing.status === "accepted" && thing.target === who)
      thing.status = "reported";
    // No obligations are stated, so who accepted owes: the side that is not the author's.
    const owes = thing.side !== me.side && (!me.delegate || me.full);
    if (thing.kind === "commitment" && thing.status === "accepted" && owes) thing.claimedBy = me.side;
  }

  #move(next: SessionState | "stay" | "return", both: boolean, verb: Verb): void {
    if (next === "stay") return;
    const two = [...this.members.values()].filter(({ delegate }) => !delegate);
    if (both && !two.every((one) => (verb === "CLOSE" ? one.closed : one.introduced))) return;
    if (next === "return") this.state = this.#returnsTo;
    else {
      if (next === ESCALATED) this.#returnsTo = this.state;
      this.state = next;
    }
  }

  #join(who: number, side: number, presence: Member["presence"]): Member {
    const member = { side, delegate: false, full: false, presence, introduced: false, closed: false };
    this.members.set(who, member);
    return member;
  }

  #leave(who: number): void {
    const member = this.members.get(who);
    if (member !== undefined) member.presence = "left";
    for (const thing of this.things) {
      if (thing.kind !== "delegation" || thing.author !== who || thing.status === "done") continue;
      thing.status = "done";
      if (thing.target !== undefined) this.#leave(thing.target);
    }
  }
}
