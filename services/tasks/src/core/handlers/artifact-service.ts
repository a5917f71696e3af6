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
import { DeputeError, ErrorReason, invalid, newId, owningOrganization, toTimestamp } from "@depute/core";
import { bytesOf, pageOfList } from "@depute/service";
import type { ReadTx } from "@depute/store";
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
import { type Caller, callerOf, type TasksContext } from "./context.ts";

/** Handles the calls of ArtifactService. Artifacts carry values that are too large for one message. */
export function artifactService(tasks: TasksContext): ServiceImpl<typeof ArtifactService> {
  const { engine } = tasks;
  return {
    async createArtifact(request, context) {
      return { artifact: toArtifact(await createArtifact(tasks, request, context)) };
    },

    async writeArtifact(request, context) {
      return { artifact: toArtifact(await writeArtifact(tasks, request, context)) };
    },

    async *readArtifact({ artifactId, offset }, context) {
      const caller = await callerOf(tasks, context);
      const { size } = await engine.store.read(async (tx) => {
        const artifact = await findVisibleArtifact(tx, caller, artifactId);
        if (!artifact.isWhole) throw artifactNotFound(artifactId);
        return artifact;
      });
      if (Number(offset) > size) throw invalid("offset", `is beyond the artifact's ${size} bytes`);
      // The loop reads the next piece only after the client has received the previous piece. So a slow client keeps
      // only one piece in this process's memory.
      for (let at = Number(offset); at < size && !context.signal.aborted; ) {
        const checked = await engine.store.read((tx) => readPiece(tx, artifactId, at));
        if (checked === undefined) throw artifactNotFound(artifactId);
        const data = checked.data.subarray(at - checked.start);
        at += data.length;
        yield { data };
      }
    },

    async listArtifacts(request, context) {
      const { taskId } = request;
      const caller = await callerOf(tasks, context);
      return engine.store.read(async (tx) => {
        const record = await readTask(tx, taskId);
        if (record === undefined) throw taskNotFound(taskId);
        requireVisible(caller, record);
        const visible = (await listArtifacts(tx, taskId)).filter((one) =>
          isArtifactVisible(caller, record, one),
        );
        const page = pageOfList(
          visible.map(toArtifact),
          request,
          { list: "artifacts", taskId },
          ({ id }) => id,
          (artifact) => bytesOf(ArtifactSchema, artifact),
        );
        return { artifacts: page.items, nextPageToken: page.nextPageToken };
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
  const { taskId, name, mediaType } = request;
  const sha256 = Buffer.from(request.sha256).toString("hex");
  const size = Number(request.sizeBytes);
  const caller = await callerOf(tasks, context);
  return engine.store.write(async (tx) => {
    const record = await readTask(tx, taskId);
    const mayAdd = record !== undefined && (isDelegator(caller, record) || isDelegate(caller, record));
    if (record === undefined || !mayAdd) throw taskNotFound(taskId);
    const storedArtifacts = await listArtifacts(tx, taskId);
    const existing = storedArtifacts.find(
      (one) =>
        one.maker === caller.principal && one.name === name && one.sha256 === sha256 && one.size === size,
    );
    if (existing !== undefined) return existing;
    const { status } = record.task;
    if (!isOpen(record)) throw stateConflict(taskId, status, status);
    requireRoom(
      { number: storedArtifacts.length, bytes: storedArtifacts.reduce((sum, one) => sum + one.size, 0) },
      size,
    );
    const artifact: ArtifactRecord = {
      id: newId(clock.now()),
      taskId,
      name,
      mediaType: mediaType || "application/octet-stream",
      size,
      sha256,
      written: 0,
      isWhole: false,
      maker: caller.principal,
      organization: owningOrganization(caller, record.task),
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
      throw new DeputeError(
        ErrorReason.DIGEST_MISMATCH,
        "the bytes do not match the announced digest: write all bytes again",
        {
          metadata: { expected: after.sha256, actual },
        },
      );
    });
}

/**
 * Computes the digest piece by piece, outside a write transaction. The process therefore never holds a whole artifact.
 */
async function digestOf({ engine }: TasksContext, { id, size }: ArtifactRecord): Promise<string> {
  const hash = createHash("sha256");
  for (let at = 0; at < size; ) {
    const checked = await engine.store.read((tx) => readPiece(tx, id, at));
    if (checked === undefined) break;
    const data = checked.data.subarray(at - checked.start);
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

function toArtifact(record: ArtifactRecord): Artifact {
  return create(ArtifactSchema, {
    id: record.id,
    taskId: record.taskId,
    name: record.name,
    mediaType: record.mediaType,
    sizeBytes: BigInt(record.size),
    sha256: new Uint8Array(Buffer.from(record.sha256, "hex")),
    writtenBytes: BigInt(record.written),
    isComplete: record.isWhole,
    creator: record.maker,
    organization: record.organization,
    createTime: toTimestamp(record.createMs),
  });
}
