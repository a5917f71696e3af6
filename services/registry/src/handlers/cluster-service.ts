import type { ServiceImpl } from "@connectrpc/connect";
import { type ClusterService, ReplicaState } from "@depute/contracts/depute/registry/v1/cluster_service_pb";
import { toTimestamp } from "@depute/core";
import type { ReportedReplica, ServiceDeps } from "@depute/service";
import { identify, type RegistryContext } from "../context.ts";

const STATES = {
  serving: ReplicaState.SERVING,
  "not serving": ReplicaState.NOT_SERVING,
  lost: ReplicaState.LOST,
} as const satisfies Record<ReportedReplica["status"], ReplicaState>;

export function clusterService(
  registry: RegistryContext,
  { replicas }: Pick<ServiceDeps, "replicas">,
): ServiceImpl<typeof ClusterService> {
  return {
    async getCluster(_request, context) {
      // The roles of a caller with a holder proof are checked once the proof is.
      await identify(registry, context);
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
