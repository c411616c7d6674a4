/** Consumer keys, with which tools charge the balance, and what they may be charged. */
import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { AccountKeysCard } from '../parts/account-keys.tsx';
import { Page } from '../parts/page.tsx';
import { KeyCard } from '../parts/keys.tsx';
import { consumerKeySnippets, Snippets } from '../parts/snippets.tsx';

export function KeysPage() {
  return (
    <Page
      title="Consumer keys"
      intro={
        <>
          A consumer key can spend your whole balance, read your usage and top up from your saved
          card. Hand out a{' '}
          <Anchor component={Link} to="/budgets" inherit underline="always">
            spend key
          </Anchor>{' '}
          instead: it can only spend from one budget.
        </>
      }
    >
      <AccountKeysCard />
      <KeyCard
        kind="consumer"
        title="Keys"
        empty="For tools, spend keys are enough. Create a consumer key for a program that manages your budgets."
        snippet={(key) => <Snippets snippets={consumerKeySnippets(key)} />}
      />
    </Page>
  );
}
