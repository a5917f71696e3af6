/** The module jose. */
export type Jose = typeof import("jose");

let loading: Promise<Jose> | undefined;

/** Loads jose at the first JSON Web Token, because most processes never get one. */
export function loadJose(): Promise<Jose> {
  loading ??= import("jose");
  return loading;
}
