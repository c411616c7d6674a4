/** Developer Settings: secret keys, the return URL, and the keys that verify receipts. */
import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Developer, ReceiptKeys } from '../answers.ts';
import { read, write } from '../api.ts';
import { changesOf } from '../changes.ts';
import { useEdits } from '../edits.ts';
import { inWordsOfForm } from '../field-labels.ts';
import { NewKeySnippet } from '../parts/charge-snippet.tsx';
import { Field } from '../parts/charges.tsx';
import { KeyCard } from '../parts/keys.tsx';
import { Card, Page } from '../parts/page.tsx';
import { Failed, Loaded } from '../parts/states.tsx';
import { CopyText, Id } from '../parts/values.tsx';
import { showAnswer } from '../show-answer.ts';

export function SettingsPage() {
  return (
    <Page title="Developer Settings">
      <KeyCard
        kind="developer"
        title="Secret keys"
        empty="Your tool server charges consumers with a secret key."
        snippet={(key) => <NewKeySnippet secret={key} />}
      />
      <ReturnUrl />
      <ReceiptKeyList />
      <KeyCard
        kind="legacy"
        title="Legacy keys"
        empty="Only the legacy endpoints need one: agents, grants and invocations."
      />
    </Page>
  );
}

function ReturnUrl() {
  const developer = useQuery({
    queryKey: ['developer'],
    queryFn: () => read<Developer>('/v1/developer'),
  });
  return (
    <Card title="After a top-up">
      <Loaded query={developer}>
        {({ developerId, returnUrl }) => (
          <Stack gap="md">
            <Text c="dimmed">
              When a balance is too low for your tool, the error has a link to a top-up page. After
              the payment, that page leads back to this URL.
            </Text>
            <ReturnUrlForm saved={returnUrl ?? ''} />
            <Field label="Developer">
              <Id id={developerId} />
            </Field>
          </Stack>
        )}
      </Loaded>
    </Card>
  );
}

function ReturnUrlForm({ saved }: { readonly saved: string }) {
  const { draft, edit, forget } = useEdits({ url: saved });
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: (sent: typeof draft) => {
      const changes = changesOf(bodyOf(saved), bodyOf(sent.url));
      return write<Developer>('/v1/developer', changes, { method: 'PATCH' });
    },
    onSuccess: async (answer, sent) => {
      await showAnswer(queries, ['developer'], answer);
      forget(sent);
      notifications.show({ message: 'Saved.' });
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate(draft);
      }}
    >
      <Group align="flex-end" gap="sm">
        <TextInput
          label="Return URL"
          placeholder="https://example.com/chat"
          style={{ flex: '1 1 260px' }}
          value={draft.url}
          onChange={(event) => edit({ url: event.currentTarget.value })}
        />
        <Button type="submit" variant="default" loading={save.isPending}>
          Save
        </Button>
      </Group>
      {save.error && <Failed error={save.error} message={inWordsOfForm(save.error)} />}
    </form>
  );
}

const bodyOf = (url: string) => ({ returnUrl: url.trim() || null });

function ReceiptKeyList() {
  const [isShown, setShown] = useState(false);
  const keys = useQuery({
    queryKey: ['receipt-keys'],
    queryFn: () => read<ReceiptKeys>('/v1/receipts/keys'),
    enabled: isShown,
  });
  return (
    <Card title="Receipt keys">
      <Text c="dimmed" mb="md">
        With these keys, your server can verify receipts without calling Farebox. Keep them secret.
      </Text>
      {!isShown && (
        <Button variant="default" onClick={() => setShown(true)}>
          Show receipt keys
        </Button>
      )}
      {isShown && (
        <Loaded query={keys}>
          {(answer) =>
            answer.keys.map(({ id, key }) => (
              <Field key={id} label={`Key ${id}`}>
                <Group gap="xs">
                  <span className="id breaks">{key}</span>
                  <CopyText value={key} label="Copy" />
                </Group>
              </Field>
            ))
          }
        </Loaded>
      )}
    </Card>
  );
}
