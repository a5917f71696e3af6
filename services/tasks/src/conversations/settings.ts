import { defineSettings, WEBHOOK_HOSTS } from "@depute/service";

export const CONVERSATION_SETTINGS = defineSettings({ a2aWebhookHosts: WEBHOOK_HOSTS });
