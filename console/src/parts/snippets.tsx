/** Code to copy, in tabs. */
import { Group, Tabs } from '@mantine/core';
import { useSession } from './shell.tsx';
import { CopyText } from './values.tsx';

interface Snippet {
  readonly name: string;
  readonly code: string;
}

/** Programs may reach the API at another host than this page. */
type Composed = (apiUrl: string) => readonly Snippet[];

export function Snippets({ snippets: compose }: { readonly snippets: Composed }) {
  const snippets = compose(useSession().data?.apiUrl ?? window.location.origin);
  return (
    <Tabs defaultValue={snippets[0]?.name ?? ''}>
      <Tabs.List>
        {snippets.map(({ name }) => (
          <Tabs.Tab key={name} value={name}>
            {name}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {snippets.map(({ name, code }) => (
        <Tabs.Panel key={name} value={name} pt="sm">
          <pre className="snippet" tabIndex={0} aria-label={`${name} example`}>
            {code}
          </pre>
          <Group justify="flex-end" mt="xs">
            <CopyText value={code} label="Copy code" />
          </Group>
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

/** A consumer key is for programs of the owner. MCP servers get spend keys. */
export function consumerKeySnippets(key: string): Composed {
  return (apiUrl) => [readSnippet(key, `${apiUrl}/v1/balance`)];
}

/** How the holder of a spend key gives it to an MCP server. It reads its budgets, and no balance. */
export function spendKeySnippets(key: string): Composed {
  return (apiUrl) => [
    {
      name: 'Claude Code',
      code: `claude mcp add --transport http SERVER_NAME https://SERVER_URL/mcp \\\n  --header "X-Service-Key: ${key}"`,
    },
    {
      name: 'Cursor',
      code: JSON.stringify(
        {
          mcpServers: {
            SERVER_NAME: { url: 'https://SERVER_URL/mcp', headers: { 'X-Service-Key': key } },
          },
        },
        null,
        2,
      ),
    },
    {
      name: 'VS Code',
      code: JSON.stringify(
        {
          servers: {
            SERVER_NAME: {
              type: 'http',
              url: 'https://SERVER_URL/mcp',
              headers: { 'X-Service-Key': key },
            },
          },
        },
        null,
        2,
      ),
    },
    readSnippet(key, `${apiUrl}/v1/budgets`),
  ];
}

function readSnippet(key: string, url: string): Snippet {
  return { name: 'curl', code: `curl ${url} \\\n  -H "Authorization: Bearer ${key}"` };
}

/** What a tool server sends for a call, besides the key of its caller. */
export interface SampleCharge {
  readonly tool: string;
  readonly amount?: number;
  readonly units?: Readonly<Record<string, number>>;
}

/** How a tool server charges: the consumer key of its caller, or the given one, with which the code runs as it is. */
export function developerSnippets(
  key: string,
  charge: SampleCharge,
  consumerKey?: string,
): Composed {
  // Within single quotes of a shell, a quote ends them, stands alone, and begins them again.
  const body = JSON.stringify({ apiKey: consumerKey ?? 'CONSUMER_KEY', ...charge }).replaceAll(
    "'",
    `'\\''`,
  );
  const given = consumerKey && JSON.stringify(consumerKey);
  const members = Object.entries(charge).map(([name, value]) => [name, onOneLine(value)] as const);
  return (apiUrl) => [
    {
      name: 'Node.js',
      code: [
        `import { Farebox } from '@farebox/client';`,
        '',
        `const farebox = new Farebox({ secretKey: '${key}', baseUrl: '${apiUrl}' });`,
        `const charge = await farebox.charge({`,
        `  apiKey: ${consumerKey === undefined ? `request.headers['x-service-key']` : `'${consumerKey}'`},`,
        ...members.map(([name, value]) => `  ${name}: ${value},`),
        `});`,
      ].join('\n'),
    },
    {
      name: 'Python',
      code: [
        'import uuid',
        'import requests',
        '',
        'response = requests.post(',
        `    "${apiUrl}/v1/charges",`,
        `    headers={"Authorization": "Bearer ${key}", "Idempotency-Key": str(uuid.uuid4())},`,
        `    json={"apiKey": ${given ?? 'consumer_key'}, ${members.map(([name, value]) => `"${name}": ${value}`).join(', ')}},`,
        '    timeout=10,',
        ')',
        'response.raise_for_status()  # Not paid: do not run the tool.',
        'charge = response.json()',
      ].join('\n'),
    },
    {
      name: 'curl',
      code: `curl ${apiUrl}/v1/charges \\\n  -H "Authorization: Bearer ${key}" \\\n  -H "Content-Type: application/json" \\\n  -d '${body}'`,
    },
  ];
}

/** JSON with spaces, which JavaScript and Python read as well. */
function onOneLine(value: unknown): string {
  return JSON.stringify(value, null, 1).replaceAll(/\n */g, ' ');
}
