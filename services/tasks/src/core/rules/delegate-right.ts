/** The right that a delegator's token has to grant. */
export const DELEGATE_RIGHT = { namespace: "depute:tasks", action: "delegate" } as const;
