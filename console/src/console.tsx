import { TransportProvider, useQuery } from "@connectrpc/connect-query";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import type { QueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useMemo, useState } from "react";
import { Shell } from "./parts/shell.tsx";
import { SignIn } from "./parts/sign-in.tsx";
import { Loading } from "./parts/states.tsx";
import { type Credentials, readCredentials, storeCredentials } from "./rpc/credentials.ts";
import { usePlace } from "./rpc/place.ts";
import { needsCredentials } from "./rpc/refusal.ts";
import { createTransport } from "./rpc/transport.ts";
import type { PageName, Place } from "./rules/route.ts";

/** The component of each page. A component's code is loaded when its page is first shown. */
const PAGE: Readonly<Record<PageName, React.ComponentType<{ place: Place }>>> = {
  overview: lazy(() => import("./pages/overview.tsx")),
  tasks: lazy(() => import("./pages/tasks.tsx")),
  agents: lazy(() => import("./pages/agents.tsx")),
  tokens: lazy(() => import("./pages/tokens.tsx")),
  reviews: lazy(() => import("./pages/reviews.tsx")),
  sessions: lazy(() => import("./pages/sessions.tsx")),
  executions: lazy(() => import("./pages/executions.tsx")),
  log: lazy(() => import("./pages/log.tsx")),
};

/** Shows the console. Its calls use the credentials that the browser stores. */
export function Console({ queries }: { readonly queries: QueryClient }) {
  const [credentials, setCredentials] = useState(readCredentials);
  const transport = useMemo(() => createTransport(credentials), [credentials]);
  const signIn = (next: Credentials) => {
    storeCredentials(next);
    queries.clear();
    setCredentials(next);
  };
  return (
    <TransportProvider transport={transport}>
      <Admitted key={JSON.stringify(credentials)} credentials={credentials} signIn={signIn} />
    </TransportProvider>
  );
}

interface AdmittedProps {
  readonly credentials: Credentials;
  readonly signIn: (credentials: Credentials) => void;
}

/** Shows the pages, or the sign-in if the platform requires other credentials. */
function Admitted({ credentials, signIn }: AdmittedProps) {
  const place = usePlace();
  const tried = useQuery(TaskService.method.listTasks, { pageSize: 1 }, { staleTime: Infinity });
  const issuer = useQuery(
    TokenService.method.getIssuer,
    {},
    { staleTime: Infinity, enabled: tried.isSuccess },
  );
  if (tried.isError && needsCredentials(tried.error)) {
    return <SignIn signIn={signIn} error={credentials.kind === "none" ? undefined : tried.error} />;
  }
  const Page = PAGE[place.page];
  return (
    <Shell
      place={place}
      platform={issuer.data?.principal ?? ""}
      signedIn={credentials.kind}
      signOut={() => signIn({ kind: "none" })}
    >
      <Suspense fallback={<Loading what="the page" />}>
        <Page place={place} />
      </Suspense>
    </Shell>
  );
}
