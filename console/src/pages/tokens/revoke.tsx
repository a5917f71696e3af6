import { createClient } from "@connectrpc/connect";
import { useQuery, useTransport } from "@connectrpc/connect-query";
import { RevocationScope } from "@depute/contracts/delegateos/v0/revocation_pb";
import type { DelegationRecord } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { RootKeyService, RootKeyState } from "@depute/contracts/depute/tokens/v1/root_key_service_pb";
import { type ReactNode, useMemo } from "react";
import { Ask } from "../../parts/dialog.tsx";
import { readCredentials } from "../../rpc/credentials.ts";

interface RevokeProps {
  readonly block: DelegationRecord;
  /** The body of the dialog, which states the consequences of the revocation. */
  readonly children: ReactNode;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/**
 * Revokes a block. If the platform signed the block, the platform also signs the revocation. Otherwise the caller's key
 * signs the revocation in the browser.
 */
export function Revoke({ block, children, onDone, onClose }: RevokeProps) {
  const transport = useTransport();
  const client = useMemo(() => createClient(RevocationService, transport), [transport]);
  const roots = useQuery(RootKeyService.method.listRootKeys, { pageSize: 1000 });
  const root = roots.data?.keys.find(({ principal }) => principal === block.delegator);
  const isOfPlatform = root !== undefined && root.state !== RootKeyState.RETIRED;
  const credentials = readCredentials();
  const canSign = isOfPlatform || credentials.kind === "key";
  const revoke = async () => {
    const { revocationId } = block;
    if (isOfPlatform) await client.revokeMintedToken({ revocationId, scope: RevocationScope.CHAIN });
    else if (credentials.kind === "key") {
      const { signedRevocation } = await import("../../rpc/sign-revocation.ts");
      await client.revokeToken({ entry: signedRevocation(credentials.seed, revocationId) });
    }
    onDone();
  };
  return (
    <Ask
      title="Revoke this token"
      act="Revoke"
      isDangerous
      isDisabled={!canSign}
      onAct={() => revoke()}
      onClose={onClose}
    >
      <p>A revocation counts for every decision after it, and nothing takes it back. It ends:</p>
      {children}
      {roots.isSuccess && !canSign && (
        <p className="refused">
          The platform did not sign this block. Sign in with the key of its signer or its holder to revoke it.
        </p>
      )}
    </Ask>
  );
}
