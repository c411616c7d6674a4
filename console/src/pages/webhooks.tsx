/** Webhook endpoints: where Farebox sends the account's events. A secret is shown once, when it is made. */
import { Button, Group, MultiSelect, Stack, Text, TextInput } from '@mantine/core';
import { IconPlus, IconWebhook } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { NewWebhookEndpoint, WebhookEndpoints } from '../answers.ts';
import { read } from '../api.ts';
import { writeOnce } from '../retry-key.ts';
import { EVENT_CHOICES } from '../parts/event-types.ts';
import { Chosen, type Click } from '../parts/chosen.tsx';
import { FormDialog, useFormRequest } from '../parts/form-dialog.tsx';
import { LowBalanceCard } from '../parts/low-balance.tsx';
import { Card, Page } from '../parts/page.tsx';
import { SecretModal } from '../parts/secret-modal.tsx';
import { Empty, Failed, Loaded } from '../parts/states.tsx';
import { EndpointTable } from '../parts/webhook-endpoints.tsx';
import { WebhookLog } from '../parts/webhook-log.tsx';

const POLL_MS = 5_000;

export function WebhooksPage() {
  const endpoints = useQuery({
    queryKey: ['webhook-endpoints'],
    queryFn: () => read<WebhookEndpoints>('/v1/webhook-endpoints'),
    refetchInterval: POLL_MS,
  });
  const [isCreating, setIsCreating] = useState(false);
  const [secret, setSecret] = useState<string>();
  const [click, setClick] = useState<Click>();
  // The endpoint as it is now: somebody may enable or delete it while its log is open.
  const logged = endpoints.data?.webhookEndpoints.find(({ id }) => id === click?.id);
  const shown = (made: string) => {
    setIsCreating(false);
    setSecret(made);
  };
  return (
    <Page
      title="Webhooks"
      intro="Farebox tells your systems what happens to this account: a top-up was credited, a budget is nearly used up, a key was revoked."
      aside={
        <Button leftSection={<IconPlus size={16} />} onClick={() => setIsCreating(true)}>
          Add endpoint
        </Button>
      }
    >
      <Card title="Endpoints" flush>
        <Loaded query={endpoints}>
          {({ webhookEndpoints: all }) =>
            all.length === 0 ? (
              <Empty icon={<IconWebhook size={22} />} title="No endpoints yet">
                Add the URL of a receiver. Each request is signed as Standard Webhooks specifies.
              </Empty>
            ) : (
              <EndpointTable
                endpoints={all}
                onSecret={setSecret}
                onLog={({ id }) => setClick({ id })}
                onDeleted={() => setClick(undefined)}
              />
            )
          }
        </Loaded>
      </Card>
      {logged && (
        <Chosen key={logged.id} click={click}>
          <WebhookLog endpoint={logged} />
        </Chosen>
      )}
      <LowBalanceCard />
      <FormDialog opened={isCreating} onClose={() => setIsCreating(false)} title="Add endpoint">
        {isCreating && <CreateForm onMade={shown} />}
      </FormDialog>
      <SecretModal
        title="Signing secret"
        what="secret"
        secret={secret}
        onClose={() => setSecret(undefined)}
      >
        <Text size="sm" c="dimmed">
          Your receiver verifies each request with it.
        </Text>
      </SecretModal>
    </Page>
  );
}

function CreateForm({ onMade }: { readonly onMade: (secret: string) => void }) {
  const [url, setUrl] = useState('');
  const [description, setDescription] = useState('');
  const [types, setTypes] = useState<string[]>([]);
  const queries = useQueryClient();
  const create = useFormRequest({
    mutationFn: () => {
      const wanted = types.length === 0 ? null : types;
      const body = { url: url.trim(), description, types: wanted };
      return writeOnce<NewWebhookEndpoint>('/v1/webhook-endpoints', body);
    },
    onSuccess: async ({ secret }) => {
      onMade(secret);
      await queries.invalidateQueries({ queryKey: ['webhook-endpoints'] });
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate();
      }}
    >
      <Stack gap="md">
        <TextInput
          label="URL"
          description="An https URL on a public address."
          required
          withAsterisk={false}
          maxLength={2_000}
          data-autofocus
          value={url}
          onChange={(event) => setUrl(event.currentTarget.value)}
        />
        <MultiSelect
          label="Events"
          description="Leave it empty to send all events."
          searchable
          data={EVENT_CHOICES}
          value={types}
          onChange={setTypes}
        />
        <TextInput
          label="Description"
          maxLength={200}
          value={description}
          onChange={(event) => setDescription(event.currentTarget.value)}
        />
        {create.error && <Failed error={create.error} />}
        <Group justify="flex-end">
          <Button type="submit" loading={create.isPending}>
            Add endpoint
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
