import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { AuthorityService } from "@depute/contracts/depute/registry/v1/authority_service_pb";
import { DiscoveryService } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { OfferService } from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { OrganizationService } from "@depute/contracts/depute/registry/v1/organization_service_pb";
import { PolicyService } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { ProposalService } from "@depute/contracts/depute/registry/v1/proposal_service_pb";
import { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { startTestHost } from "@depute/service/testing";
import { registry } from "../index.ts";
import { type FakeVerifier, fakeVerifier } from "./fake-verifier.ts";

export { as } from "@depute/service/testing";

/** Principals of the tests. Each principal's text is also the principal's secret. */
export const ALICE = `${"A".repeat(42)}A`;
export const BOB = `${"B".repeat(42)}E`;
export const CAROL = `${"C".repeat(42)}I`;
export const DAVE = `${"D".repeat(42)}M`;

/** Starts a registry behind a real socket, with a fake verifier. The client shares no code with the registry. */
export async function startPlatform(args: readonly string[] = []) {
  const verifier: FakeVerifier = { calls: [] };
  const wakeUps: string[] = [];
  const host = await startTestHost({
    module: registry,
    args,
    fakes: [fakeVerifier(verifier)],
    principals: [ALICE, BOB, CAROL, DAVE],
    onWake: { topic: "agents", listener: (key) => wakeUps.push(key) },
  });

  return {
    clock: host.clock,
    get transport() {
      return host.transport;
    },
    verifier,
    get publicUrl() {
      return host.url;
    },
    /** The agent ids of all wake-ups that the registry has published. */
    wakeUps,
    get agents() {
      return host.client(AgentService);
    },
    get authorities() {
      return host.client(AuthorityService);
    },
    get discovery() {
      return host.client(DiscoveryService);
    },
    get offers() {
      return host.client(OfferService);
    },
    get trust() {
      return host.client(TrustService);
    },
    get policy() {
      return host.client(PolicyService);
    },
    get proposals() {
      return host.client(ProposalService);
    },
    get organizations() {
      return host.client(OrganizationService);
    },
    /** Stops the services and restarts them on the same files, `awayMs` milliseconds later. */
    restart: (awayMs = 0) => host.whileDown(() => host.clock.advance(awayMs)),
    stop: host.stop,
  };
}

export type Platform = Awaited<ReturnType<typeof startPlatform>>;
