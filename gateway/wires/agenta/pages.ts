/** The protocol's manifest as published by its authors. */
export interface Manifest {
  readonly protocol_id: string;
  readonly status: string;
  readonly purpose: string;
  readonly message_types: readonly string[];
  readonly documents: Readonly<Record<"html" | "json" | "markdown", string>>;
  readonly schemas: readonly string[];
  readonly state_transitions: { readonly allowed: readonly string[]; readonly terminal: readonly string[] };
  readonly failure_modes: Readonly<Record<string, readonly string[]>>;
}

/** A section of the page: a heading with a list below it. */
interface Section {
  readonly title: string;
  readonly items: readonly Item[];
}

/** An item of a list: a text, with or without a link to an address of this platform. */
type Item = string | { readonly text: string; readonly href: string };

function sections(url: string, manifest: Manifest): Section[] {
  const publicAddress = (address: string) => `${url}${new URL(address).pathname}`;
  const link = (address: string): Item => ({
    text: address.split("/").at(-1) ?? address,
    href: publicAddress(address),
  });
  const { state_transitions: states, failure_modes: modes } = manifest;
  return [
    { title: "Messages", items: manifest.message_types },
    { title: "Schemas", items: manifest.schemas.map(link) },
    {
      title: "Documents",
      items: Object.entries(manifest.documents).map(([text, address]) => ({
        text,
        href: publicAddress(address),
      })),
    },
    { title: "State transitions", items: states.allowed },
    { title: "Terminal states", items: states.terminal },
    ...Object.entries(modes).map(([level, items]) => ({
      title: `Failure modes: ${level.replaceAll("_", " ")}`,
      items,
    })),
    {
      title: "On this platform",
      items: [
        { text: "agent.json", href: `${url}/.well-known/agent.json` },
        { text: "offers", href: `${url}/agenta/offers` },
        { text: "pricing", href: `${url}/pricing/index.json` },
        { text: "verification", href: `${url}/verification/index.json` },
      ],
    },
  ];
}

/** Returns the manifest as Markdown, for human readers. */
export function manifestMarkdown(url: string, manifest: Manifest): string {
  const item = (each: Item) =>
    typeof each === "string" ? `- \`${each}\`` : `- [${each.text}](${each.href})`;
  const body = sections(url, manifest).map(
    ({ title, items }) => `## ${title}\n\n${items.map(item).join("\n")}\n`,
  );
  const head = `# ${manifest.protocol_id}\n\nStatus: ${manifest.status}\n\n${manifest.purpose}\n`;
  return [head, ...body].join("\n");
}

/** Returns the manifest as an HTML page, for human readers. */
export function manifestHtml(url: string, manifest: Manifest): string {
  const item = (each: Item) =>
    typeof each === "string"
      ? `<li><code>${html(each)}</code></li>`
      : `<li><a href="${html(each.href)}">${html(each.text)}</a></li>`;
  const body = sections(url, manifest).map(
    ({ title, items }) => `<h2>${html(title)}</h2>\n<ul>\n${items.map(item).join("\n")}\n</ul>`,
  );
  const id = html(manifest.protocol_id);
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${id}</title></head>
<body>
<h1>${id}</h1>
<p>Status: ${html(manifest.status)}</p>
<p>${html(manifest.purpose)}</p>
${body.join("\n")}
</body>
</html>
`;
}

function html(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
