import { DeputeError, ErrorReason } from "@depute/core";

/** A refusal of an HTTP request before any service is called. `status` is the HTTP status of the response. */
export class HttpRefusal extends DeputeError<typeof ErrorReason.INVALID_REQUEST> {
  readonly status: 404 | 405 | 406;
  /** Headers of the response, such as `allow`. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: 404 | 405 | 406,
    reason: typeof ErrorReason.UNKNOWN_METHOD | typeof ErrorReason.INVALID_REQUEST,
    message: string,
    options: { metadata: Record<string, string>; headers?: Readonly<Record<string, string>> },
  ) {
    // The base class has one reason as its type parameter. UNKNOWN_METHOD and INVALID_REQUEST have the same options, so
    // this cast is safe.
    super(reason as typeof ErrorReason.INVALID_REQUEST, message, { metadata: options.metadata });
    this.status = status;
    this.headers = options.headers ?? {};
  }
}

/** Returns the error for a path that no route has. (RFC 9110 section 15.5.5) */
export function unknownPath(path: string): HttpRefusal {
  const method = path.slice(0, 200);
  return new HttpRefusal(
    404,
    ErrorReason.UNKNOWN_METHOD,
    `the path ${method} does not exist; correct the path`,
    {
      metadata: { method },
    },
  );
}

/** Returns the error for a method that a known path does not support. (RFC 9110 section 15.5.6) */
export function methodNotAllowed(allow: readonly string[]): HttpRefusal {
  return new HttpRefusal(405, ErrorReason.UNKNOWN_METHOD, `use ${allow.join(" or ")}`, {
    metadata: { method: allow.join(",") },
    headers: { allow: allow.join(", ") },
  });
}

/** Returns the error for an `accept` header that names none of the response's media types. (RFC 9110 section 15.5.7) */
export function notAcceptable(types: readonly string[]): HttpRefusal {
  const message = `accept: must allow ${types.join(" or ")}`;
  return new HttpRefusal(406, ErrorReason.INVALID_REQUEST, message, {
    metadata: { available_types: types.join(", ") },
  });
}
