import type { ServiceImpl } from "@connectrpc/connect";
import { type ClusterService, ReplicaState } from "@depute/contracts/depute/registry/v1/cluster_service_pb";
import { toTimestamp } from "@depute/core";
import type { ReportedReplica, ServiceDeps } from "@depute/service";

const STATES = {
  serving: ReplicaState.SERVING,
  "not serving": ReplicaState.NOT_SERVING,
  lost: ReplicaState.LOST,
} as const satisfies Record<ReportedReplica["status"], ReplicaState>;

export function clusterService({
  replicas,
}: Pick<ServiceDeps, "replicas">): ServiceImpl<typeof ClusterService> {
  return {
    async getCluster() {
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
