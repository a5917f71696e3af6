import { TabsView } from "../parts/tabs.tsx";
import type { Place } from "../rules/route.ts";
import { DelegationPage } from "./tokens/delegation.tsx";
import { Delegations } from "./tokens/delegations.tsx";
import { Inspect } from "./tokens/inspect.tsx";
import { RevocationLog } from "./tokens/revocation-log.tsx";

export default function Tokens({ place }: { readonly place: Place }) {
  if (place.id !== "")
    return (
      <DelegationPage
        key={`${place.id} ${place.query.block}`}
        delegationId={place.id}
        revocationId={place.query.block ?? ""}
      />
    );
  return (
    <>
      <div className="page-head">
        <h1>Tokens</h1>
      </div>
      <TabsView
        label="Parts of the page"
        tabs={[
          { id: "delegations", title: "Delegations", content: () => <Delegations /> },
          { id: "inspect", title: "Inspect a token", content: () => <Inspect /> },
          { id: "revocations", title: "Revocation log", content: () => <RevocationLog /> },
        ]}
      />
    </>
  );
}
