/** The part of oidc-provider that the example uses. The package has no types. */
declare module "oidc-provider" {
  export class Provider {
    constructor(issuer: string, configuration: object);
    listen(port: number, host: string, listening: () => void): unknown;
  }
}
