import type { DescService } from "@bufbuild/protobuf";
import { servicesOf } from "@depute/core/services";
import type { ServiceName } from "@depute/service";

/** The RPC services that the gateway forwards, by the service of the platform that implements them. */
export const FORWARDED: Readonly<Record<ServiceName, readonly DescService[]>> = {
  registry: servicesOf("registry"),
  tasks: servicesOf("tasks"),
  tokens: servicesOf("tokens"),
  verifier: servicesOf("verifier"),
};
