import type { ContextKey, ContextValues } from "@connectrpc/connect";

/** Connect's ContextValues, with methods that all calls share. */
export class PlainValues implements ContextValues {
  get<T>(key: ContextKey<T>): T {
    const values = this as unknown as Record<symbol, T>;
    return key.id in values ? (values[key.id] as T) : key.defaultValue;
  }

  set<T>(key: ContextKey<T>, value: T): this {
    (this as unknown as Record<symbol, T>)[key.id] = value;
    return this;
  }

  delete(key: ContextKey<unknown>): this {
    delete (this as unknown as Record<symbol, unknown>)[key.id];
    return this;
  }
}
