import { create, type DescField, type DescMethod, type DescService, ScalarType } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import { reasonName } from "@depute/core";
import { fromConnectError } from "../errors-on-wire.ts";

/** Milliseconds for which a stream is read. */
const STREAM_MS = 300;
/** Number of calls that are open at once. */
const AT_ONCE = 16;

/** The reads that {@link walkReads} makes. */
export interface ReadWalk {
  readonly transport: Transport;
  readonly services: readonly DescService[];
  /** The texts to try in each text field of each request, such as ids and principals. */
  readonly texts: readonly string[];
  readonly headers?: Record<string, string>;
}

/**
 * Calls every read of the services. A unary method is called with an empty request, and once for each text in each text
 * field. A stream is read from the beginning of its log.
 *
 * @returns the response of each call, by a description of the call: JSON in which bytes are text, or `refused: REASON`
 */
export async function walkReads({ services, texts, ...how }: ReadWalk): Promise<Map<string, string>> {
  const calls = services.flatMap(({ methods }) =>
    methods
      .filter(({ idempotency }) => idempotency === Level.NO_SIDE_EFFECTS)
      .flatMap((method) => [
        { method, name: method.name, request: beginningOf(method) },
        ...(method.methodKind === "unary" ? method.input.fields.filter(isText) : []).flatMap((field) =>
          texts.map((text) => ({
            ...{ method, name: `${method.name} ${field.name}=${text}` },
            request: requestOf(field, text),
          })),
        ),
      ]),
  );
  const answers = new Map<string, string>();
  for (let from = 0; from < calls.length; from += AT_ONCE) {
    await Promise.all(
      calls.slice(from, from + AT_ONCE).map(async ({ method, name, request }) => {
        answers.set(name, await answerOf(how, method, request));
      }),
    );
  }
  return answers;
}

/** Returns the request for a whole list, or for a stream from the beginning of its log. */
function beginningOf({ input, methodKind }: DescMethod): object {
  const isLog = methodKind !== "unary" && input.fields.some(({ name }) => name === "after_sequence");
  return isLog ? { afterSequence: 0n } : {};
}

function isText(field: DescField): boolean {
  if (field.name === "page_token" || field.name === "request_id") return false;
  if (field.fieldKind === "list") return field.listKind === "scalar" && field.scalar === ScalarType.STRING;
  return field.fieldKind === "scalar" && field.scalar === ScalarType.STRING;
}

function requestOf(field: DescField, text: string): object {
  const value = field.fieldKind === "list" ? [text] : text;
  if (field.oneof === undefined) return { [field.localName]: value };
  return { [field.oneof.localName]: { case: field.localName, value } };
}

async function answerOf(
  { transport, headers }: Pick<ReadWalk, "transport" | "headers">,
  method: DescMethod,
  request: object,
): Promise<string> {
  const message = create(method.input, request as never);
  const found: unknown[] = [];
  const ended = new AbortController();
  const timer = setTimeout(() => ended.abort(), method.methodKind === "unary" ? 10_000 : STREAM_MS);
  try {
    if (method.methodKind === "unary") {
      const answer = await transport.unary(
        ...([method, ended.signal, undefined, headers, message] as unknown as Parameters<Transport["unary"]>),
      );
      found.push(answer.message);
    } else {
      async function* one() {
        yield message;
      }
      const answer = await transport.stream(
        ...([method, ended.signal, undefined, headers, one()] as unknown as Parameters<Transport["stream"]>),
      );
      for await (const each of answer.message) found.push(each);
    }
  } catch (error) {
    if (!ended.signal.aborted) return `refused: ${reasonName(fromConnectError(error).reason)}`;
  } finally {
    clearTimeout(timer);
  }
  return JSON.stringify(found, readable);
}

/** A replacer for JSON.stringify that converts bytes to text, so that a search finds texts in them. */
function readable(this: Record<string, unknown>, key: string, value: unknown): unknown {
  const raw = this[key];
  if (raw instanceof Uint8Array) return Buffer.from(raw).toString("utf8");
  return typeof value === "bigint" ? String(value) : value;
}
