import { create, toBinary } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { AttenuationSchema } from "@depute/contracts/delegateos/v0/token_pb";
import {
  AttenuateWithKeyRequestSchema,
  CreateKeyRequestSchema,
  type KeptKey,
  KeptKeySchema,
  type KeyService,
  KeyState,
} from "@depute/contracts/depute/tokens/v1/key_service_pb";
import {
  type AttenuateTokenRequest,
  AttenuateTokenRequestSchema,
  type PrepareAttenuationRequest,
  PrepareAttenuationRequestSchema,
} from "@depute/contracts/depute/tokens/v1/token_service_pb";
import {
  DeputeError,
  decodePageToken,
  ErrorReason,
  encodeBase64Url,
  encodePageToken,
  fromTimestamp,
  invalid,
  pageSize,
  toTimestamp,
} from "@depute/core";
import { createProof, createRevocation } from "@depute/dct";
import type { TokensContext } from "../context.ts";
import { scopeWord } from "../rules/documents.ts";
import { keptKeyState } from "../rules/kept-key.ts";
import { signKeyRevocation } from "../rules/key-revocation.ts";
import { listKeys, type StoredKey } from "../store/kept-keys.ts";
import { attenuateToken, prepareAttenuation } from "./attenuation.ts";
import { mintAs, signedBy } from "./mint-token.ts";
import { toRevocation } from "./revocation-service.ts";

const STATES = {
  active: KeyState.ACTIVE,
  replaced: KeyState.REPLACED,
  retired: KeyState.RETIRED,
  revoked: KeyState.REVOKED,
} as const;

/** Handles the calls of KeyService. */
export function keyService(tokens: TokensContext): Required<ServiceImpl<typeof KeyService>> {
  const { engine, store, clock, keys, revocations, keyRevoker, roots, audit } = tokens;
  const toKey = (key: StoredKey) => message(key, clock.now());
  const digestOf = (bytes: Uint8Array) => engine.blake2b256(bytes);
  return {
    async createKey(request, context) {
      const { principal: owner, organization } = await tokens.identify(context);
      const { requestId, agentId } = request;
      const digest = encodeBase64Url(digestOf(toBinary(CreateKeyRequestSchema, request)));
      return { key: toKey(await keys.create(owner, { requestId, agentId, digest, organization })) };
    },

    async getKey({ keyId }, context) {
      const { principal: owner } = await tokens.identify(context);
      return { key: toKey(await keys.find(keyId, owner)) };
    },

    async listKeys(request, context) {
      const { principal: owner } = await tokens.identify(context);
      const filters = { owner };
      const after = Number(decodePageToken(request.pageToken, filters)?.[0] ?? 0);
      const size = pageSize(request.pageSize);
      const keyRows = await store.read((tx) => listKeys(tx, owner, after, size + 1));
      const page = keyRows.slice(0, size);
      const last = keyRows.length > size ? page.at(-1) : undefined;
      const nextPageToken = last === undefined ? "" : encodePageToken([last.position], filters);
      return { keys: page.map(toKey), nextPageToken };
    },

    async rotateKey({ keyId }, context) {
      const { principal: owner } = await tokens.identify(context);
      const { replaced, key } = await keys.rotate(keyId, owner);
      return { replaced: toKey(replaced), key: toKey(key) };
    },

    async revokeKeptKey({ keyId, keepBefore: kept }, context) {
      const { principal: owner } = await tokens.identify(context);
      const keepBefore = kept === undefined ? 0 : fromTimestamp(kept);
      // Revokes the kept key first, so that it signs no block before the service has recorded the revocation.
      const key = await keys.revoke(keyId, owner);
      const keyRevocation = { key: key.principal, keepBefore, now: clock.now() };
      const statement = await keys.use(keyId, owner, "revoke", (keypair) =>
        signKeyRevocation(engine, keyRevocation, keypair),
      );
      const place = await keyRevoker.record(statement, owner);
      return { key: toKey(key), ...(place !== undefined && { revocation: toRevocation(place) }) };
    },

    async mintWithKey({ keyId, mint }, context) {
      const identity = await tokens.identify(context);
      const { principal: owner } = identity;
      if (mint === undefined) throw invalid("mint", "is required");
      const minted = await keys.use(keyId, owner, "mint", (keypair) => {
        const { id: principal } = keypair.principal;
        if (roots.trusted().has(principal)) return mintAs(tokens, mint, identity, signedBy(keypair));
        const reason = "no_trusted_root";
        audit.assertRoom();
        audit.add({ kind: "mint", caller: owner, principal, decision: "denied", reason, blocks: [] });
        throw new DeputeError(
          ErrorReason.CALLER_NOT_ALLOWED,
          "the key is not a trusted root of this platform; an operator adds it to DEPUTE_TRUSTED_ROOTS",
        );
      });
      return { minted };
    },

    async attenuateWithKey(request, context) {
      const identity = await tokens.identify(context);
      const { keyId, token } = request;
      if (token === undefined || request.attenuation === undefined)
        throw invalid("attenuation", "is required");
      const key = await keys.find(keyId, identity.principal);
      const requestedBlock = request.attenuation;
      const requestBytes = toBinary(AttenuateWithKeyRequestSchema, request);
      const attenuation = create(AttenuationSchema, {
        ...requestedBlock,
        attenuator: requestedBlock.attenuator || key.principal,
        delegationId:
          requestedBlock.delegationId || `del_${Buffer.from(digestOf(requestBytes)).toString("hex", 0, 6)}`,
      });
      if (attenuation.attenuator !== key.principal) {
        throw invalid("attenuation.attenuator", "must be the key's principal");
      }
      const proposed: PrepareAttenuationRequest = create(PrepareAttenuationRequestSchema, {
        token,
        attenuation,
      });
      const prepared = await prepareAttenuation(tokens, proposed);
      const { digest = new Uint8Array(), attenuation: block } = prepared;
      const signature = await keys.use(keyId, identity.principal, "attenuate", ({ privateKey }) =>
        engine.sign(digest, privateKey),
      );
      const signed: AttenuateTokenRequest = create(AttenuateTokenRequestSchema, {
        ...{ token, signature },
        ...(block !== undefined && { attenuation: block }),
      });
      return { attenuated: await attenuateToken(tokens, signed, identity) };
    },

    async revokeWithKey({ keyId, revocationId, scope }, context) {
      const { principal: owner } = await tokens.identify(context);
      const entry = await keys.use(keyId, owner, "revoke", (keypair) =>
        createRevocation(engine, revocationId, scopeWord(scope), keypair, clock.now()),
      );
      const logged = await revocations.record(entry, owner, []);
      return logged === undefined ? { pending: true } : { revocation: toRevocation(logged) };
    },

    async proveWithKey({ keyId, method: htm, target: htu, token }, context) {
      const { principal: owner } = await tokens.identify(context);
      const claims = { htm, htu, now: clock.now(), ...(token !== "" && { token }) };
      return {
        proof: await keys.use(keyId, owner, "prove", (keypair) => createProof(engine, keypair, claims)),
      };
    },
  };
}

function message(key: StoredKey, now: number): KeptKey {
  const { id, principal, owner, agentId, organization, successorId, createTime, endTime } = key;
  return create(KeptKeySchema, {
    ...{ id, principal, owner, agentId, organization, successorId },
    state: STATES[keptKeyState(key, now)],
    createTime: toTimestamp(createTime),
    ...(endTime > 0 && { endTime: toTimestamp(endTime) }),
  });
}
