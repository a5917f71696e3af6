import type { Column, Command } from "./command.ts";
import { AGENT, arg, document, list, oneOf, text } from "./parameters.ts";

const AGENT_COLUMNS: readonly Column[] = [
  ["ID", "id"],
  ["STATUS", "status", "enum:AGENT_STATUS_"],
  ["HEALTH", "health", "enum:AGENT_HEALTH_"],
  ["VERSION", "version"],
  ["CAPABILITIES", "capabilityIds", "count"],
  ["AGE", "createTime", "age"],
  ["NAME", "displayName"],
];
const AGENT_WIDE: readonly Column[] = [
  ["PRINCIPAL", "principal"],
  ["ORGANIZATION", "organization"],
  ["HEARTBEAT", "heartbeatTime", "age"],
];
const HEALTHS = ["alive", "suspect", "lost", "unknown"] as const;
const agent = { item: "agent", columns: AGENT_COLUMNS, wide: AGENT_WIDE };

const OFFER_COLUMNS: readonly Column[] = [
  ["ID", "offer.offerId"],
  ["VERSION", "offer.offerVersion"],
  ["STATUS", "status", "enum:OFFER_STATUS_"],
  ["SELLER", "offer.sellerAgent.agentId"],
  ["PRICE", "offer.pricing.amount", "number"],
  ["CURRENCY", "offer.pricing.currency"],
  ["TITLE", "offer.title"],
];
const OFFER_WIDE: readonly Column[] = [
  ["MODEL", "offer.pricing.pricingModel", "enum:PRICING_MODEL_"],
  ["PUBLISHED", "publishTime", "age"],
];
const OFFER = arg("OFFER", "offerId", "id of the offer");
const OFFER_VERSION = text("offerVersion", "version of the offer");

const REPLICA_COLUMNS: readonly Column[] = [
  ["SERVICE", "service"],
  ["ADDRESS", "address"],
  ["STATE", "state", "enum:REPLICA_STATE_"],
  ["VERSION", "version"],
  ["UP", "startTime", "age"],
  ["REPORTED", "reportTime", "age"],
  ["LEASES", "leases", "list"],
];

export const REGISTRY: readonly Command[] = [
  {
    path: "cluster status",
    summary: "Lists the replicas of the platform",
    details: "Without replicas it lists the services of the registry's own process.",
    remote: true,
    example: "depute cluster status",
    call: {
      service: "cluster",
      method: "getCluster",
      shown: { item: "replicas", columns: REPLICA_COLUMNS },
    },
  },
  {
    path: "agents list",
    summary: "Lists agents",
    remote: true,
    flags: {
      status: oneOf("status", "AGENT_STATUS_", ["active", "deprecated", "removed"], "agents in this status"),
      health: oneOf("health", "AGENT_HEALTH_", HEALTHS, "agents of this health"),
      capability: text("capabilityId", "agents with this capability"),
      organization: text("organization", "agents of this organization"),
      principal: text("principal", "agents of this principal"),
      tag: list("tags", "agents with this tag"),
      protocol: text("protocol", "agents that speak this protocol"),
    },
    example: "depute agents list --health alive -o json",
    call: {
      service: "agents",
      method: "listAgents",
      list: true,
      shown: { item: "agents", columns: AGENT_COLUMNS, wide: AGENT_WIDE },
    },
  },
  {
    path: "agents describe",
    summary: "Shows an agent",
    remote: true,
    args: [AGENT],
    example: "depute agents describe echo -o yaml",
    call: { service: "agents", method: "getAgent", describe: true, shown: agent },
  },
  {
    path: "agents create",
    summary: "Registers an agent, or replaces its registration",
    remote: true,
    flags: document("agent", "members of depute.registry.v1.Agent"),
    example: `depute agents create --file '{"id":"clerk","version":"1.1.0","displayName":"Clerk"}'`,
    call: { service: "agents", method: "registerAgent", shown: agent },
  },
  {
    path: "agents deprecate",
    summary: "Marks an agent as deprecated: it gets no new tasks by choice of the platform",
    remote: true,
    args: [AGENT],
    flags: { message: text("message", "why, for callers") },
    example: "depute agents deprecate clerk --message 'use echo'",
    call: {
      service: "agents",
      method: "setAgentStatus",
      request: { status: "AGENT_STATUS_DEPRECATED" },
      shown: agent,
    },
  },
  {
    path: "agents activate",
    summary: "Makes a deprecated agent active again",
    remote: true,
    args: [AGENT],
    example: "depute agents activate clerk",
    call: {
      service: "agents",
      method: "setAgentStatus",
      request: { status: "AGENT_STATUS_ACTIVE" },
      shown: agent,
    },
  },
  {
    path: "agents versions",
    summary: "Lists the versions of an agent",
    remote: true,
    args: [AGENT],
    example: "depute agents versions clerk",
    call: {
      service: "agents",
      method: "listAgentVersions",
      list: true,
      shown: {
        item: "versions",
        columns: [
          ["REVISION", "agent.revision"],
          ["VERSION", "agent.version"],
          ["STATUS", "agent.status", "enum:AGENT_STATUS_"],
          ["CREATED", "createTime", "time"],
        ],
      },
    },
  },
  {
    path: "agents check",
    summary: "Shows whether an agent may delegate to another, and why",
    remote: true,
    args: [arg("FROM", "fromAgentId", "agent that delegates"), arg("TO", "toAgentId", "agent that works")],
    flags: {
      justification: text("justification", "the reason that the delegator gives"),
      capability: text("task.capabilityId", "capability of the task"),
    },
    example: "depute agents check clerk echo",
    call: {
      service: "policy",
      method: "checkDelegation",
      shown: {
        item: "",
        columns: [
          ["ALLOWED", "allowed", "flag"],
          ["DECISION", "decision", "enum:POLICY_DECISION_"],
          ["RULE", "whenToDelegate"],
          ["OVERSEER", "overseerId"],
          ["FAILURE", "predicateFailure"],
        ],
      },
    },
  },
  {
    path: "agents delete",
    summary: "Removes an agent",
    remote: true,
    args: [AGENT],
    flags: { message: text("message", "why, for callers") },
    example: "depute agents delete clerk",
    call: { service: "agents", method: "deregisterAgent", shown: agent },
  },
  {
    path: "capabilities list",
    summary: "Lists capabilities of agents",
    remote: true,
    flags: {
      agent: text("agentId", "capabilities of this agent"),
      category: text("filter.category", "capabilities of this category"),
      query: text("filter.query", "capabilities that fit this text"),
      level: { type: "int", field: "level", default: "1", help: "detail: 0 names, 1 summaries, 2 schemas" },
      tag: list("tags", "capabilities of agents with this tag"),
      organization: text("organization", "capabilities of agents of this organization"),
      health: oneOf("health", "AGENT_HEALTH_", HEALTHS, "capabilities of agents of this health"),
    },
    example: "depute capabilities list --agent echo",
    call: {
      service: "discovery",
      method: "discoverCapabilities",
      list: true,
      shown: {
        item: "capabilities",
        columns: [
          ["CAPABILITY", "summary.id|reference.id|full.id"],
          ["AGENT", "agentId"],
          ["CATEGORY", "summary.cat|reference.cat|full.cat"],
          ["DESCRIPTION", "summary.desc|full.desc"],
        ],
        wide: [
          ["VERSION", "agentVersion"],
          ["HASH", "summary.h|reference.h|full.h"],
        ],
      },
    },
  },
  {
    path: "capabilities describe",
    summary: "Shows a capability with its schemas",
    remote: true,
    args: [arg("CAPABILITY", "capabilityId", "id of the capability")],
    flags: { agent: text("agentId", "the capability of this agent") },
    example: "depute capabilities describe echo --agent echo",
    call: {
      service: "discovery",
      method: "resolveCapability",
      describe: true,
      shown: {
        item: "",
        columns: [
          ["CAPABILITY", "capability.id"],
          ["AGENT", "agentId"],
        ],
      },
    },
  },
  {
    path: "offers list",
    summary: "Lists offers",
    remote: true,
    flags: {
      seller: text("sellerAgentId", "offers of this agent"),
      organization: text("organizationId", "offers of this organization"),
      capability: text("capability", "offers of this capability"),
      buyer: text("buyerAgentId", "offers that are open to this agent"),
      "valid-at": { type: "time", field: "validAt", help: "offers that are valid at this time" },
    },
    example: "depute offers list",
    call: {
      service: "offers",
      method: "listOffers",
      list: true,
      shown: { item: "offers", columns: OFFER_COLUMNS, wide: OFFER_WIDE },
    },
  },
  {
    path: "offers describe",
    summary: "Shows an offer",
    remote: true,
    args: [OFFER],
    flags: { version: OFFER_VERSION },
    example: "depute offers describe $OFFER",
    notRun: "needs a published offer",
    call: {
      service: "offers",
      method: "getOffer",
      describe: true,
      shown: { item: "offer", columns: OFFER_COLUMNS, wide: OFFER_WIDE },
    },
  },
  {
    path: "offers versions",
    summary: "Lists the versions of an offer",
    remote: true,
    args: [OFFER],
    example: "depute offers versions $OFFER",
    notRun: "needs a published offer",
    call: {
      service: "offers",
      method: "listOfferVersions",
      list: true,
      shown: { item: "offers", columns: OFFER_COLUMNS, wide: OFFER_WIDE },
    },
  },
  {
    path: "offers create",
    summary: "Publishes an offer, or a version of one",
    remote: true,
    flags: document("offer", "members of agenta.delegation.v0.Offer"),
    example: "depute offers create --file @offer.json",
    notRun: "needs the named file",
    call: {
      service: "offers",
      method: "publishOffer",
      shown: { item: "offer", columns: OFFER_COLUMNS, wide: OFFER_WIDE },
    },
  },
  {
    path: "offers withdraw",
    summary: "Withdraws an offer, or one version of it",
    remote: true,
    args: [OFFER],
    flags: { version: OFFER_VERSION, message: text("message", "why, for buyers") },
    example: "depute offers withdraw $OFFER",
    notRun: "needs a published offer",
    call: {
      service: "offers",
      method: "withdrawOffer",
      shown: { item: "", columns: [["WITHDRAWN", "withdrawnCount", "number"]] },
    },
  },
  {
    path: "trust describe",
    summary: "Shows the trust in an agent, overall and by another agent",
    remote: true,
    args: [AGENT],
    flags: { counterpart: text("counterpartAgentId", "also the trust of this agent") },
    example: "depute trust describe echo",
    call: {
      service: "trust",
      method: "getTrust",
      describe: true,
      shown: {
        item: "",
        columns: [
          ["SCORE", "overall.score"],
          ["LEVEL", "overall.level"],
        ],
      },
    },
  },
  {
    path: "trust explain",
    summary: "Lists the evidence behind the trust in an agent",
    remote: true,
    args: [AGENT],
    flags: { counterpart: text("counterpartAgentId", "evidence by this agent") },
    example: "depute trust explain echo",
    call: {
      service: "trust",
      method: "explainTrust",
      list: true,
      shown: {
        item: "entries",
        columns: [
          ["SEQUENCE", "sequence"],
          ["TIME", "time", "time"],
          ["BEFORE", "scoreBefore", "number"],
          ["AFTER", "scoreAfter", "number"],
          ["BY", "evidence.counterpartAgentId|recordedBy"],
        ],
        wide: [["RECORDED-BY", "recordedBy"]],
      },
    },
  },
  {
    path: "trust endorse",
    summary: "Records the endorsement of an agent by another",
    remote: true,
    args: [
      arg("AGENT", "evidence.agentId", "agent that is endorsed"),
      arg("BY", "evidence.counterpartAgentId", "agent that endorses"),
    ],
    flags: { id: { ...text("evidenceId", "id of the evidence: a repeat counts once"), required: true } },
    example: "depute trust endorse echo clerk --id endorsement-1",
    notRun: "needs the endorser's key",
    call: {
      service: "trust",
      method: "recordEvidence",
      request: { evidence: { endorsement: {} } },
      shown: {
        item: "entry",
        columns: [
          ["SEQUENCE", "sequence"],
          ["BEFORE", "scoreBefore", "number"],
          ["AFTER", "scoreAfter", "number"],
        ],
      },
    },
  },
];
