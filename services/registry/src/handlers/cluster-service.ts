import type { ServiceImpl } from "@connectrpc/connect";
import { type ClusterService, ReplicaState } from "@depute/contracts/depute/registry/v1/cluster_service_pb";
import { DeputeError, ErrorReason, toTimestamp } from "@depute/core";
import { hasRole, type ReportedReplica, type ServiceDeps } from "@depute/service";

const STATES = {
  serving: ReplicaState.SERVING,
  "not serving": ReplicaState.NOT_SERVING,
  lost: ReplicaState.LOST,
} as const satisfies Record<ReportedReplica["status"], ReplicaState>;

export function clusterService({
  replicas,
  authority,
}: Pick<ServiceDeps, "replicas" | "authority">): ServiceImpl<typeof ClusterService> {
  return {
    async getCluster(_, context) {
      // For a caller with a holder proof, `identify` also looks up the roles.
      const identity = await authority.identify(context);
      // No organization owns the cluster's state, so the auditor of one organization may not read it.
      if (!identity.local && !hasRole(identity, "operator") && !hasRole(identity, "auditor"))
        throw new DeputeError(
          ErrorReason.CALLER_NOT_ALLOWED,
          "only an operator or an auditor may read the cluster's state",
        );
      const reported = await replicas.list();
      return {
        replicas: reported.map(({ status, startMs, reportMs, leases, ...rest }) => ({
          ...rest,
          state: STATES[status],
          startTime: toTimestamp(startMs),
          reportTime: toTimestamp(reportMs),
          leases: [...leases],
        })),
      };
    },
  };
}
