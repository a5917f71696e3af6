import type { ServiceImpl } from "@connectrpc/connect";
import {
  type Health,
  HealthCheckResponse_ServingStatus as Status,
} from "@depute/contracts/grpc/health/v1/health_pb";
import { DeputeError, ErrorReason } from "@depute/core";

/**
 * The states of the parts on which a service depends, by name. The health report shows a failed part, but the service
 * stays ready: the part fails for every replica, so another replica could not help.
 */
export class HealthParts {
  readonly #states = new Map<string, boolean>();
  readonly #listeners = new Set<() => void>();

  get states(): ReadonlyMap<string, boolean> {
    return this.#states;
  }

  /** Sets the state of a part; undefined removes the part. */
  set(name: string, serving: boolean | undefined): void {
    if (this.#states.get(name) === serving) return;
    if (serving === undefined) this.#states.delete(name);
    else this.#states.set(name, serving);
    for (const listener of this.#listeners) listener();
  }

  /** Calls the listener after each change of a part's state. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }
}

/** The health of one server: the status of each of its RPC services, and whether all of them serve. */
export interface HealthState {
  /** Sets the status of the named services (full names). Without names, sets the status of all services. */
  set(serving: boolean, ...services: string[]): void;
  /** Whether all services of the server serve. */
  readonly serving: boolean;
  readonly services: ReadonlyMap<string, boolean>;
  /** The states of the parts, by name. */
  readonly parts: ReadonlyMap<string, boolean>;
  /**
   * Calls the listener after each change of a status or of a part's state. Returns a function that removes the
   * listener.
   */
  onChange(listener: () => void): () => void;
}

/** Creates a state in which no service serves yet. */
export function createHealth(services: readonly string[], parts = new HealthParts()): HealthState {
  const states = new Map(services.map((name) => [name, false]));
  const listeners = new Set<() => void>();
  const changed = () => {
    for (const listener of listeners) listener();
  };
  parts.onChange(changed);
  return {
    services: states,
    parts: parts.states,
    get serving() {
      return [...states.values()].every(Boolean);
    },
    set(serving, ...serviceNames) {
      const changedNames = (serviceNames.length === 0 ? [...states.keys()] : serviceNames).filter(
        (name) => states.get(name) !== serving,
      );
      for (const name of changedNames) states.set(name, serving);
      if (changedNames.length > 0) changed();
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Implements the gRPC Health Checking Protocol. The empty service name means all services of the server together. */
export function healthService(state: HealthState): ServiceImpl<typeof Health> {
  const statusOf = (service: string): Status | undefined => {
    const serving =
      service === "" ? state.serving : (state.services.get(service) ?? state.parts.get(service));
    if (serving === undefined) return undefined;
    return serving ? Status.SERVING : Status.NOT_SERVING;
  };
  return {
    check({ service }) {
      const status = statusOf(service);
      if (status === undefined) {
        throw new DeputeError(ErrorReason.SERVICE_UNKNOWN, "unknown service", { metadata: { service } });
      }
      return { status };
    },
    list() {
      const entries = ["", ...state.services.keys(), ...state.parts.keys()].map((name) => [
        name,
        { status: statusOf(name) ?? 0 },
      ]);
      return { statuses: Object.fromEntries(entries) };
    },
    async *watch({ service }, { signal }) {
      let last: Status | undefined;
      while (!signal.aborted) {
        const status = statusOf(service) ?? Status.SERVICE_UNKNOWN;
        if (status !== last) {
          last = status;
          yield { status };
          continue;
        }
        await changed(state, signal);
      }
    },
  };
}

function changed(state: HealthState, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      unsubscribe();
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const unsubscribe = state.onChange(wake);
    signal.addEventListener("abort", wake, { once: true });
  });
}
