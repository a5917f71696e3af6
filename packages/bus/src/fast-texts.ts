/** More often than V8 runs a function before it notes what the function's look-ups meet. */
const LOOK_UPS = 100;

/**
 * Has V8 keep String.prototype in its fast form.
 *
 * ioredis has a class that extends String. From then on V8 keeps String.prototype as a table to look names up in, and
 * nothing but a look-up through a String object brings it back, which nobody ever makes: each `length`, `slice` and
 * `charCodeAt` of each text in the process is looked up where it is used, in place of being compiled into it. That was a
 * tenth of what the verification of a token cost.
 */
export function keepTextsFast(): void {
  const text = Object("text") as { readonly charCodeAt: unknown };
  for (let i = 0; i < LOOK_UPS; i++) lookUp(text);
}

function lookUp(text: { readonly charCodeAt: unknown }): unknown {
  return text.charCodeAt;
}
