export { messageDigest } from "@depute/core/sha256";
export type { StoreLostError } from "@depute/store";
export { abortError, iterateUntilAborted, linkSignals, untilAborted, withTimeout } from "./aborts.ts";
export {
  AnswerRoom,
  bytesOf,
  type CutPage,
  cutPage,
  type ListPage,
  MAX_ANSWER_BYTES,
  pageOfList,
} from "./answer-limit.ts";
export type { TrailDecision } from "./audit/audit-trail.ts";
export {
  type Authorised,
  type Authority,
  type Binding,
  callerDenied,
  createAuthority,
  denialWord,
  hasRole,
  type Identity,
  identityOf,
  mayActFor,
  type ProofVerdict,
  provenIdentity,
  type Right,
  tokenDenied,
} from "./authority.ts";
export { BatchedWrites, type BatchedWritesOptions } from "./batched-writes.ts";
export { BOUNDS_OPERATORS, BoundsOperators } from "./bounds-operators.ts";
export {
  forwardHeaders,
  forwardOptions,
  forwardWireHeaders,
  optionsForOwner,
  ownHeaders,
  ownOptions,
  type WireRequest,
} from "./call-headers.ts";
export { CREDENTIAL_KINDS, type CredentialKind, type CurrentCall } from "./call-origin.ts";
export { type Caller, callerOf, LOCAL_PRINCIPAL, organizationOf } from "./caller.ts";
export { CHALLENGE } from "./challenge.ts";
export { ClientAddresses, DIRECT_CLIENTS } from "./client-address.ts";
export { addressOf, type CommonSettings, commonSettings, portOf, urlsOf } from "./common-settings.ts";
export { type Credentials, parseCredentials } from "./credentials.ts";
export { DeadlineLoop, type DeadlineLoopOptions } from "./deadline-loop.ts";
export { createDirectTransport, type DirectTransportOptions } from "./direct-transport.ts";
export { DOMAIN_METRICS, DomainMetrics, type MetricEntry, type Reading } from "./domain-metrics.ts";
export {
  fromConnectError,
  reasonOf,
  retryHeader,
  toConnectError,
  toStatus,
  toWire,
} from "./errors-on-wire.ts";
export { createFastPath, type FastPath } from "./fast/fast-path.ts";
export { PlainHeaders } from "./fast/plain-values.ts";
export { countJsonValues } from "./field-limit/count-fields.ts";
export * from "./files.ts";
export { createHealth, HealthParts, type HealthState, healthService } from "./health.ts";
export { HOP } from "./hop-headers.ts";
export { hostServices } from "./host.ts";
export type { Host, HostedModule, HostOptions } from "./host-options.ts";
export { assertDoor } from "./host-rules.ts";
export { errorAnswer, sendBytes, sendError, sendJson, sendText } from "./http-answers.ts";
export {
  assertMediaType,
  type BodyLimits,
  mediaTypeOf,
  readBody,
  requestStatusOf,
  takeBody,
} from "./http-body.ts";
export { HttpRefusal, notAcceptable, unknownPath } from "./http-refusal.ts";
export type { HttpRequest, HttpResponse, HttpRoute, PathParameters } from "./http-routes.ts";
export type { IdentityHolder, MintBounds } from "./identities/identities-file.ts";
export { ROLES, type RoleName } from "./identities/identities-schema.ts";
export { identityRefused } from "./identities/refusals.ts";
export type { AssertionId, ProvenSubject, SubjectToken } from "./identities/token-verifier.ts";
export { unavailable } from "./interceptors/client.ts";
export { currentCall } from "./interceptors/current-call.ts";
export { noteRefusedItem } from "./interceptors/quotas.ts";
export type { OnRoleDenied } from "./interceptors/roles.ts";
export { type ServerInterceptorOptions, serverInterceptors, shuttingDown } from "./interceptors/server.ts";
export { assertValid, planRules } from "./interceptors/validate.ts";
export {
  type CpuQuota,
  chargeCpu,
  countCpu,
  cpuQuotaOf,
  isCpuScarce,
} from "./interceptors/verification-cpu.ts";
export { NO_INTERNAL_SECRETS } from "./internal-secrets.ts";
export { jsonFieldFault } from "./json-faults.ts";
export { LENIENT as JSON_OPTIONS, refusesUnknownFields } from "./json-options.ts";
export { type KeyFile, openKeyFile, openSeedFile } from "./key-file.ts";
export { createLogger, LOG_LEVELS, type Logger } from "./log.ts";
export { Counter, createMetrics, DURATION_BUCKETS_S, Gauge, Histogram, Registry } from "./metrics.ts";
export {
  type AuditOfModule,
  defineService,
  type OwnPort,
  type ServiceDeps,
  type ServiceInstance,
  type ServiceModule,
} from "./module.ts";
export { type ModuleName, SERVICES, type ServiceName } from "./names.ts";
export { OpenParts } from "./open-parts.ts";
export { AllowedHosts, type AllowedTarget } from "./outbound/allowed-hosts.ts";
export {
  type Lookup,
  Outbound,
  type OutboundAnswer,
  type OutboundOptions,
  type OutboundRequest,
  type PinnedTarget,
  readText,
} from "./outbound/outbound.ts";
export { Outbox, type OutboxOptions } from "./outbox.ts";
export {
  KEY_MIGRATIONS,
  type KeyName,
  type KeySource,
  keyFiles,
  openSeed,
  PLATFORM_KEYS,
} from "./platform-keys.ts";
export {
  MAX_COUNTED_REMAINING,
  type PurgeOptions,
  type PurgeRequest,
  PurgeTally,
  purgeOrganization,
} from "./purge.ts";
export { FairTurns, lineOf, type Turn } from "./quotas/fair-turns.ts";
export { type QuotaLimits, type QuotaOwner, Quotas } from "./quotas/quotas.ts";
export { reflectionService, registerReflection } from "./reflection.ts";
export { RegularPurge, type RegularPurgeOptions } from "./regular-purge.ts";
export { REPLICA_MIGRATIONS, type ReplicaTable, type ReportedReplica } from "./replica-table.ts";
export { REQUEST_ID_HEADER, requestIdFrom, requestIdOf } from "./request-id.ts";
export { type ResealOptions, resealStore, type SealedTable, UnopenedSecretError } from "./reseal.ts";
export {
  type FollowedReviews,
  isFinalRefusal,
  ReviewQueue,
  type ReviewQueueDeps,
  reviewCallOptions,
} from "./review-queue.ts";
export { DEFAULT_ROLES, type RolesBySettings } from "./roles/caller-roles.ts";
export { type MethodRoles, rolesOfMethod } from "./roles/method-roles.ts";
export { createRpcHandler, type RpcHandler } from "./rpc-handler.ts";
export { fingerprintOf, SealedSecrets } from "./sealed-secrets.ts";
export { type Server, type ServerOptions, startServer } from "./server.ts";
export type { ErrorNote, Manners, NotedError, ServiceManners } from "./service-manners.ts";
export {
  addSettings,
  defineSettings,
  envName,
  type FileValues,
  fileOfSecret,
  flagName,
  HelpRequested,
  mergeSettings,
  readSettings,
  readWithSources,
  type Setting,
  type SettingSource,
  type Settings,
  SettingsError,
  type SettingsTable,
  secretFileVariable,
  settingsOf,
} from "./settings.ts";
export {
  secretFileName,
  secretInFile,
  settingInFile,
  settingsSchema,
  valueInFile,
} from "./settings-file.ts";
export { SharedWork, type SharedWorkOptions, type WorkLease } from "./shared-work.ts";
export { onStopSignal } from "./signals.ts";
export { storeAt } from "./store-place.ts";
export { platformStores } from "./stores.ts";
export { StreamFollower, type StreamFollowerOptions } from "./stream-follower.ts";
export { readAuthorities } from "./tls/certificates.ts";
export { certificateOfRequest, certificateOfSocket } from "./tls/client-certificate.ts";
export { createServiceTransport, type ServiceTransport, type ServiceTransportOptions } from "./transport.ts";
export { refuseUpgrade, type UpgradeRoute } from "./upgrades.ts";
export { DEFAULT_BATCH, type FollowOptions, follow, type WaitOptions, WakeUps, waitFor } from "./wake-ups.ts";
export { WEBHOOK_HOSTS } from "./webhook-hosts.ts";
export type { HolderProof, WitnessedLog } from "./witness/depute-place.ts";
export { type Verdict, Witness } from "./witness/witness.ts";
export type { WitnessPlace } from "./witness/witness-place.ts";
