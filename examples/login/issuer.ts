/**
 * An OpenID Connect issuer for development, on loopback: `node examples/login/issuer.ts PORT AUDIENCE CLIENT...`. It
 * issues access tokens (RFC 9068) for the audience to clients that send their secret, which is `secret-of-` and the
 * client's name.
 */
import { Provider } from "oidc-provider";

const [port = "9000", audience = "https://depute.example.org", ...names] = process.argv.slice(2);
const LIFETIME_SECONDS = 300;

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: names.map((name) => ({
    client_id: name,
    client_secret: `secret-of-${name}`,
    grant_types: ["client_credentials"],
    redirect_uris: [],
    response_types: [],
  })),
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_context: unknown, resource: string) => {
        if (resource !== audience) throw new Error("another resource");
        return { scope: "", audience, accessTokenFormat: "jwt", accessTokenTTL: LIFETIME_SECONDS };
      },
    },
  },
});

provider.listen(Number(port), "127.0.0.1", () => console.log(`http://127.0.0.1:${port}`));
