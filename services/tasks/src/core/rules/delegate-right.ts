/** The capability that a delegator's token must grant. */
export const DELEGATE_RIGHT = { namespace: "depute:tasks", action: "delegate" } as const;
