import { useState } from "react";
import type { Credentials } from "../rpc/credentials.ts";
import { Refused } from "./states.tsx";

interface SignInProps {
  readonly signIn: (credentials: Credentials) => void;
  /** The error with which the platform refused the previous credentials; undefined if there were none. */
  readonly error: unknown;
}

/** Asks for credentials that the platform accepts. The console stores them only in this tab. */
export function SignIn({ signIn, error }: SignInProps) {
  const [kind, setKind] = useState<"secret" | "key">("secret");
  return (
    <main className="sign-in">
      <form
        className="card"
        onSubmit={(event) => {
          event.preventDefault();
          const form = new FormData(event.currentTarget);
          const text = (name: string) => String(form.get(name) ?? "").trim();
          if (kind === "secret") signIn({ kind, secret: text("secret") });
          else signIn({ kind, seed: text("seed"), token: text("token") });
        }}
      >
        <h1>Sign in to Depute</h1>
        <p className="quiet">The credentials stay in this tab and are deleted when it closes.</p>
        {error !== undefined && <Refused error={error} />}
        <fieldset className="choice">
          <legend>Credentials</legend>
          <label>
            <input type="radio" name="kind" checked={kind === "secret"} onChange={() => setKind("secret")} />
            Secret
          </label>
          <label>
            <input type="radio" name="kind" checked={kind === "key"} onChange={() => setKind("key")} />
            Key and token
          </label>
        </fieldset>
        {kind === "secret" ? (
          <label className="field">
            Secret
            <input name="secret" type="password" required autoComplete="off" />
          </label>
        ) : (
          <>
            <label className="field">
              Seed of the key (base64url, 32 bytes)
              <input name="seed" type="password" required autoComplete="off" />
            </label>
            <label className="field">
              Token (optional)
              <textarea name="token" rows={4} spellCheck={false} autoComplete="off" />
            </label>
          </>
        )}
        <button type="submit" className="button primary">
          Sign in
        </button>
      </form>
    </main>
  );
}
