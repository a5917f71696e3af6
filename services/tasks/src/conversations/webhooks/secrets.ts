import type { TaskPushNotificationConfig } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { type KeySource, openSeed, SealedSecrets } from "@depute/service";
import type { WebhookRow } from "../store/webhook-rows.ts";

/** The secrets of a webhook. Each may be empty. */
export interface WebhookSecrets {
  /** The value of the header `X-A2A-Notification-Token`. */
  readonly token: string;
  /** The value of the header `Authorization` after its scheme. */
  readonly credentials: string;
}

/** Seals the secrets of webhooks at rest. */
export class WebhookSeal {
  readonly #secrets: SealedSecrets;

  /** @param seed 32 bytes */
  constructor(seed: Uint8Array) {
    this.#secrets = new SealedSecrets(seed);
  }

  /** Seals the secrets of a config. Only `open` with the same task id and webhook id opens them. */
  seal({ taskId, id, token, authentication }: TaskPushNotificationConfig): string {
    const secrets: WebhookSecrets = { token, credentials: authentication?.credentials ?? "" };
    return this.#secrets.seal(Buffer.from(JSON.stringify(secrets)), contextOf(taskId, id));
  }

  /** @throws Error if another key sealed the secrets, or if the row's ids or sealed text have changed */
  open({ taskId, id, sealed }: WebhookRow): WebhookSecrets {
    const opened = this.#secrets.open(sealed, contextOf(taskId, id));
    if (opened === undefined)
      throw new Error(
        "the key `webhooks` cannot open the secrets of the webhook: restore the key that sealed the secrets",
      );
    return JSON.parse(Buffer.from(opened).toString()) as WebhookSecrets;
  }

  close(): void {
    this.#secrets.close();
  }
}

function contextOf(task: string, webhook: string) {
  return { task, webhook };
}

/**
 * Opens the platform's key `webhooks`, or makes the key if it does not exist. This key only seals secrets of webhooks.
 *
 * @throws SettingsError with the causes of {@link openSeed}
 */
export async function openWebhookSeal(keys: KeySource): Promise<WebhookSeal> {
  const danger = "its readers can open the credentials of webhooks";
  return new WebhookSeal(await openSeed(keys, { name: "webhooks.key", danger }));
}
