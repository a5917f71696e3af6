import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Console } from "./console.tsx";
import { isPassing } from "./rpc/refusal.ts";
import "./styles/base.css";
import "./styles/controls.css";
import "./styles/table.css";
import "./styles/parts.css";
import { applyTheme, readTheme } from "./parts/theme.ts";

applyTheme(readTheme());

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) => isPassing(error) && count < 2,
      refetchOnWindowFocus: true,
      staleTime: 1_000,
    },
    mutations: { retry: false },
  },
});

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no root element");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <Console queries={queries} />
    </QueryClientProvider>
  </StrictMode>,
);
