import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type Artifact,
  ArtifactSchema,
  type ArtifactService,
  type CreateArtifactRequest,
  type WriteArtifactRequest,
} from "@depute/contracts/depute/tasks/v1/artifact_service_pb";
import { DeputeError, ErrorReason, invalid, newId, toTimestamp } from "@depute/core";
import type { ReadTx } from "@depute/store";
import type { Caller } from "../caller.ts";
import {
  type ArtifactRecord,
  artifactNotFound,
  isArtifactVisible,
  isOpen,
  newBytes,
  requireRoom,
} from "../rules/artifact.ts";
import { stateConflict } from "../rules/state-machine.ts";
import { isDelegate, isDelegator, requireVisible, taskNotFound } from "../rules/visibility.ts";
import {
  appendBytes,
  dropBytes,
  insertArtifact,
  listArtifacts,
  markWhole,
  readArtifact,
  readPiece,
} from "../store/artifact-rows.ts";
import { readTask } from "../store/task-rows.ts";
import { callerOf, type TasksContext } from "./context.ts";

/** What those call whose values are too large to be sent as such. */
export function artifactService(tasks: TasksContext): ServiceImpl<typeof ArtifactService> {
  const { engine } = tasks;
  return {
    async createArtifact(request, context) {
      return { artifact: shown(await createArtifact(tasks, request, context)) };
    },

    async writeArtifact(request, context) {
      return { artifact: shown(await writeArtifact(tasks, request, context)) };
    },

    async *readArtifact({ artifactId, offset }, context) {
      const caller = await callerOf(tasks, context);
      const { size } = await engine.store.read(async (tx) => {
        const artifact = await findVisibleArtifact(tx, caller, artifactId);
        if (!artifact.isWhole) throw artifactNotFound(artifactId);
        return artifact;
      });
      if (Number(offset) > size) throw invalid("offset", `is beyond the artifact's ${size} bytes`);
      // A piece is read when the one before it was taken: a slow reader holds one in memory.
      for (let at = Number(offset); at < size && !context.signal.aborted; ) {
        const piece = await engine.store.read((tx) => readPiece(tx, artifactId, at));
        if (piece === undefined) throw artifactNotFound(artifactId);
        const data = piece.data.subarray(at - piece.start);
        at += data.length;
        yield { data };
      }
    },

    async listArtifacts({ taskId }, context) {
      const caller = await callerOf(tasks, context);
      return engine.store.read(async (tx) => {
        const record = await readTask(tx, taskId);
        if (record === undefined) throw taskNotFound(taskId);
        requireVisible(caller, record);
        const artifacts = await listArtifacts(tx, taskId);
        return { artifacts: artifacts.filter((one) => isArtifactVisible(caller, record, one)).map(shown) };
      });
    },
  };
}

async function createArtifact(
  tasks: TasksContext,
  request: CreateArtifactRequest,
  context: HandlerContext,
): Promise<ArtifactRecord> {
  const { engine, clock } = tasks;
  const { taskId, name, mediaType, sha256 } = request;
  const size = Number(request.size);
  const caller = await callerOf(tasks, context);
  return engine.store.write(async (tx) => {
    const record = await readTask(tx, taskId);
    const mayAdd = record !== undefined && (isDelegator(caller, record) || isDelegate(caller, record));
    if (record === undefined || !mayAdd) throw taskNotFound(taskId);
    const held = await listArtifacts(tx, taskId);
    const known = held.find(
      (one) =>
        one.maker === caller.principal && one.name === name && one.sha256 === sha256 && one.size === size,
    );
    if (known !== undefined) return known;
    const { status } = record.task;
    if (!isOpen(record)) throw stateConflict(taskId, status, status);
    requireRoom({ number: held.length, bytes: held.reduce((sum, one) => sum + one.size, 0) }, size);
    const artifact: ArtifactRecord = {
      id: newId(),
      taskId,
      name,
      mediaType: mediaType || "application/octet-stream",
      size,
      sha256,
      written: 0,
      isWhole: false,
      maker: caller.principal,
      isResult: isDelegate(caller, record),
      createMs: clock.now(),
    };
    await insertArtifact(tx, artifact);
    return artifact;
  });
}

async function writeArtifact(
  tasks: TasksContext,
  { artifactId, offset, data }: WriteArtifactRequest,
  context: HandlerContext,
): Promise<ArtifactRecord> {
  const { store } = tasks.engine;
  const caller = await callerOf(tasks, context);
  const after = await store.write(async (tx) => {
    const artifact = await findVisibleArtifact(tx, caller, artifactId);
    if (!caller.mayActFor(artifact.maker)) throw artifactNotFound(artifactId);
    const fresh = newBytes(artifact, Number(offset), data.length);
    if (fresh === 0) return artifact;
    await appendBytes(tx, artifact, data.subarray(data.length - fresh));
    return { ...artifact, written: artifact.written + fresh };
  });
  if (after.isWhole || after.written < after.size) return after;
  const actual = await digestOf(tasks, after);
  return store
    .write(async (tx) => {
      if (actual === after.sha256) {
        await markWhole(tx, artifactId);
        return { ...after, isWhole: true };
      }
      await dropBytes(tx, artifactId);
      return after;
    })
    .then((checked) => {
      if (checked.isWhole) return checked;
      throw new DeputeError(ErrorReason.DIGEST_MISMATCH, "the bytes are not those that were announced", {
        metadata: { expected: after.sha256, actual },
      });
    });
}

/** Piece by piece, so that no artifact is in memory as a whole, nor keeps the writer waiting. */
async function digestOf({ engine }: TasksContext, { id, size }: ArtifactRecord): Promise<string> {
  const hash = createHash("sha256");
  for (let at = 0; at < size; ) {
    const piece = await engine.store.read((tx) => readPiece(tx, id, at));
    if (piece === undefined) break;
    const data = piece.data.subarray(at - piece.start);
    hash.update(data);
    at += data.length;
  }
  return hash.digest("hex");
}

async function findVisibleArtifact(tx: ReadTx, caller: Caller, id: string): Promise<ArtifactRecord> {
  const artifact = await readArtifact(tx, id);
  const record = artifact && (await readTask(tx, artifact.taskId));
  if (artifact === undefined || record === undefined || !isArtifactVisible(caller, record, artifact)) {
    throw artifactNotFound(id);
  }
  return artifact;
}

function shown({ createMs, size, written, ...rest }: ArtifactRecord): Artifact {
  const { isResult: _isResult, ...told } = rest;
  return create(ArtifactSchema, {
    ...told,
    size: BigInt(size),
    written: BigInt(written),
    createTime: toTimestamp(createMs),
  });
}
