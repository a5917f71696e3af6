import { create, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type RootKey,
  RootKeySchema,
  type RootKeyService,
  RootKeyState,
  type RootSuccession,
  RootSuccessionSchema,
  RotateRootKeyRequestSchema,
} from "@depute/contracts/depute/tokens/v1/root_key_service_pb";
import {
  DeputeError,
  decodeBase64Url,
  decodePageToken,
  ErrorReason,
  encodeBase64Url,
  encodePageToken,
  invalid,
  pageSize,
  parseTime,
  toTimestamp,
} from "@depute/core";
import { hasRole } from "@depute/service";
import type { TokensContext } from "../context.ts";
import { spanMs } from "../rules/documents.ts";
import { assertReplicasRotate, rootKeyState } from "../rules/root-key.ts";
import { parseSuccession, type RootKeyRow, readRootKeys } from "../store/root-key-rows.ts";

const STATES = {
  signing: RootKeyState.SIGNING,
  verifying: RootKeyState.VERIFYING,
  retired: RootKeyState.RETIRED,
} as const;

/** Handles the calls of RootKeyService. Every caller may list root keys; only operators may change them. */
export function rootKeyService(tokens: TokensContext): Required<ServiceImpl<typeof RootKeyService>> {
  const { engine, store, clock, roots, audit, rootOverlapMs } = tokens;
  const toKey = (key: RootKeyRow) => message(key, clock.now());
  return {
    async listRootKeys(request, context) {
      await tokens.identify(context);
      const filters = { list: "root keys" };
      const after = Number(decodePageToken(request.pageToken, filters)?.[0] ?? 0);
      const size = pageSize(request.pageSize);
      const rest = (await store.read(readRootKeys)).filter(({ number }) => number > after);
      const page = rest.slice(0, size);
      const last = rest.length > size ? page.at(-1) : undefined;
      const nextPageToken = last === undefined ? "" : encodePageToken([last.number], filters);
      return { keys: page.map(toKey), nextPageToken };
    },

    async rotateRootKey(request, context) {
      const caller = await operator(tokens, context);
      const { requestId, overlap, retireNow, allowOlderReplicas } = request;
      if (retireNow && overlap !== undefined) throw invalid("overlap", "excludes retire_now");
      const digest = encodeBase64Url(engine.blake2b256(toBinary(RotateRootKeyRequestSchema, request)));
      const overlapMs = retireNow ? 0 : overlap === undefined ? rootOverlapMs : spanMs(overlap);
      // A repeated call returns the first rotation, whatever replicas run by then.
      if (!allowOlderReplicas && !(await isMade(tokens, caller, requestId)))
        assertReplicasRotate(await tokens.replicas.list());
      const { key, replaced } = await roots.rotate({ caller, requestId, digest, overlapMs }, audit);
      await tokens.savedRoot(roots.change);
      return { key: toKey(key), replaced: toKey(replaced) };
    },

    async retireRootKey({ principal }, context) {
      const caller = await operator(tokens, context);
      const key = await roots.retire(principal, caller, audit);
      await tokens.savedRoot(roots.change);
      return { key: toKey(key) };
    },
  };
}

/** Whether a rotation with this request id of the caller exists. */
async function isMade({ store }: TokensContext, caller: string, requestId: string): Promise<boolean> {
  const keys = await store.read(readRootKeys);
  return keys.some((key) => key.caller === caller && key.requestId === requestId);
}

/**
 * Returns the principal of a caller that may change root keys.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED
 */
async function operator(tokens: TokensContext, context: HandlerContext): Promise<string> {
  const identity = await tokens.identify(context);
  if (identity.local || hasRole(identity, "operator")) return identity.principal;
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only operators may change root keys");
}

function message(key: RootKeyRow, now: number): RootKey {
  const { principal, createTime, retireTime } = key;
  const succession = successionOf(key);
  return create(RootKeySchema, {
    principal,
    state: STATES[rootKeyState(key, now)],
    createTime: toTimestamp(createTime),
    ...(retireTime > 0 && { retireTime: toTimestamp(retireTime) }),
    ...(succession !== undefined && { succession }),
  });
}

/**
 * Returns the signed statement that a root key follows the key before it; undefined if no rotation created the key.
 */
export function successionOf(key: RootKeyRow): RootSuccession | undefined {
  const succession = parseSuccession(key.succession);
  if (succession === undefined) return undefined;
  return create(RootSuccessionSchema, {
    ...{ earlier: succession.from, successor: succession.to },
    createTime: toTimestamp(parseTime(succession.createdAt) ?? 0),
    earlierSignature: decodeBase64Url(succession.fromSignature) ?? new Uint8Array(),
    successorSignature: decodeBase64Url(succession.toSignature) ?? new Uint8Array(),
  });
}
