import type { OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Message } from "@bufbuild/protobuf";
import { bytesOf, checkAnswer, MAX_ANSWER_BYTES } from "../answer-limit.ts";
import type { CallEnd } from "../call-end.ts";
import { toConnectError } from "../errors-on-wire.ts";
import { decodingFault } from "../field-limit/with-field-limit.ts";
import { bodyTooSlow, readBody } from "../http-body.ts";
import { bodyLimitsOf, logUnsent, type RpcHandlerOptions, wholeBody } from "../rpc-handler.ts";
import { discardStream } from "../unread-body.ts";
import type { Call } from "./call.ts";
import { handOver } from "./hand-over.ts";
import { headOf, refusalOf, replace } from "./head.ts";
import { invoke } from "./invoke.ts";
import { toNodeHeaders } from "./plain-headers.ts";
import type { Answer } from "./protocol.ts";
import { sendStream } from "./send-stream.ts";
import { write } from "./write.ts";

/** Reads a call's message, has it answered, and writes the answer. */
export function serve(stream: ServerHttp2Stream, call: Call, end: CallEnd, options: RpcHandlerOptions): void {
  const tooSlow = () => Promise.reject(bodyTooSlow(options.bodyTimeoutMs));
  // Node keeps a closed stream past many collections of young memory, and its listeners with it: what they hold is this
  // one variable, which is emptied.
  let open: Open | undefined = {
    call,
    end,
    options,
    chunks: [],
    length: 0,
    limit: undefined,
    trailer: undefined,
    cancel: options.timers.after(options.bodyTimeoutMs, () => {
      if (open !== undefined) refuse(stream, open, wholeBody(tooSlow, call.method.adapter.note));
    }),
  };
  stream.on("error", ignore);
  stream.on("close", () => {
    open?.cancel();
    open?.end.leave();
    open = undefined;
  });
  stream.on("data", (chunk: Buffer) => {
    if (open !== undefined) take(stream, open, chunk);
  });
  stream.on("end", () => {
    if (open !== undefined) taken(stream, open);
  });
  stream.on("wantTrailers", () => {
    if (open?.trailer !== undefined) sendTrailer(stream, open, open.trailer);
  });
}

interface Open {
  readonly call: Call;
  readonly end: CallEnd;
  readonly options: RpcHandlerOptions;
  chunks: Buffer[];
  length: number;
  limit: number | undefined;
  trailer: OutgoingHttpHeaders | undefined;
  /** Ends the wait for the body. */
  readonly cancel: () => void;
}

// What broke is told by "close", too; without a listener it would end the process.
function ignore(): void {}

function take(stream: ServerHttp2Stream, open: Open, chunk: Buffer): void {
  const { call, options, chunks } = open;
  chunks.push(chunk);
  open.length += chunk.length;
  open.limit ??= call.protocol.limitOf(chunks, open.length, options.maxRequestBytes);
  if (open.limit === undefined || open.length <= open.limit) return;
  const limits = bodyLimitsOf(options, call.headers["content-type"]);
  refuse(
    stream,
    open,
    wholeBody(() => readBody(stream, limits, chunks), call.method.adapter.note),
  );
}

/** Has the adapter answer whose body is not plain, or does not come. */
function refuse(stream: ServerHttp2Stream, open: Open, body: AsyncIterable<Uint8Array>): void {
  open.cancel();
  open.chunks = [];
  stream.removeAllListeners("data").removeAllListeners("end").pause();
  void complete(stream, open, handOver(open.call, open.end, body));
}

function taken(stream: ServerHttp2Stream, open: Open): void {
  open.cancel();
  const { chunks, length } = open;
  const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length);
  open.chunks = [];
  const message = read(open.call, open.call.protocol.messageOf(body, open.limit));
  if (message === undefined) void complete(stream, open, handOver(open.call, open.end, only(body)));
  else if (open.call.method.spec.kind === "unary") void complete(stream, open, answer(open, message));
  else void follow(stream, open, message);
}

/** Never rejects: a failure ends the stream. */
async function follow(stream: ServerHttp2Stream, open: Open, message: Message): Promise<void> {
  const { call, end, options } = open;
  try {
    open.trailer = await sendStream(stream, call, end, options.interceptors, message);
    if (stream.destroyed || stream.closed) return;
    stream.end();
  } catch (error) {
    giveUp(stream, open, error);
  } finally {
    // What the handler listens to ends with its stream, as in the adapter.
    end.leave();
  }
}

/** Never rejects: a failure ends the stream. */
async function complete(stream: ServerHttp2Stream, open: Open, answering: Promise<Answer>): Promise<void> {
  try {
    const answer = await answering;
    open.end.settle();
    send(stream, open, answer);
  } catch (error) {
    giveUp(stream, open, error);
  }
}

async function answer({ call, end, options }: Open, message: Message): Promise<Answer> {
  const { headers, protocol } = call;
  const head = headOf(protocol);
  try {
    const response = await invoke(call, end, options.interceptors, message, head);
    replace(head.header, response.header);
    replace(head.trailer, response.trailer);
    const bytes = write(call, response.message);
    if (bytes.length > MAX_ANSWER_BYTES) checkWritten(call, response.message, bytes);
    return protocol.answer(headers, head, bytes);
  } catch (thrown) {
    return protocol.refuse(headers, head, refusalOf(thrown));
  }
}

/** JSON is longer than protobuf's binary form, which the limit is about. */
function checkWritten({ method: { spec }, protocol }: Call, message: Message, written: Uint8Array): void {
  const bytes = protocol.binary ? written.length : bytesOf(spec.method.output, message);
  try {
    checkAnswer(spec.method, message, bytes);
  } catch (thrown) {
    throw toConnectError(thrown);
  }
}

/** Undefined for what is no message, or holds too much: how that is refused is the adapter's business. */
function read({ method, protocol }: Call, bytes: Uint8Array | undefined): Message | undefined {
  if (bytes === undefined) return undefined;
  const { maxFields, spec } = method;
  if (decodingFault(spec.method, maxFields, bytes, protocol.binary) !== undefined) return undefined;
  try {
    return method.serialization.getI(protocol.binary).parse(bytes);
  } catch {
    return undefined;
  }
}

async function* only(body: Uint8Array): AsyncIterable<Uint8Array> {
  if (body.length > 0) yield body;
}

function sendTrailer(stream: ServerHttp2Stream, open: Open, trailer: OutgoingHttpHeaders): void {
  try {
    stream.sendTrailers(trailer);
  } catch (error) {
    giveUp(stream, open, error);
  }
}

function giveUp(stream: ServerHttp2Stream, { call, options }: Open, error: unknown): void {
  stream.destroy();
  logUnsent(options.log, call.method.path, error);
}

function send(stream: ServerHttp2Stream, open: Open, { status, header, body, trailer }: Answer): void {
  if (stream.destroyed || stream.closed) return;
  const fields = toNodeHeaders(header);
  fields[":status"] = status;
  if (trailer === undefined) {
    stream.respond(fields);
  } else {
    open.trailer = toNodeHeaders(trailer);
    stream.respond(fields, WITH_TRAILERS);
  }
  stream.end(body);
  if (!stream.readableEnded) discardStream(stream);
}

const WITH_TRAILERS = { waitForTrailers: true };
