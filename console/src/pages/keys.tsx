/** Consumer keys, with which tools charge the balance. */
import { Page } from '../parts/page.tsx';
import { KeyCard } from '../parts/keys.tsx';
import { consumerSnippets, Snippets } from '../parts/snippets.tsx';

export function KeysPage() {
  return (
    <Page
      title="Consumer keys"
      intro="A tool server that has your key can charge your balance. Use one key for each client, so that you can revoke one without the others."
    >
      <KeyCard
        kind="consumer"
        title="Keys"
        empty="Create a key and copy it into your MCP client."
        snippet={(key) => <Snippets snippets={consumerSnippets(key)} />}
      />
    </Page>
  );
}
