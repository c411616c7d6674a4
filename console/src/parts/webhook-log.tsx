/** What was sent to a webhook endpoint: each event with its last answer, and a way to send it again. */
import { Badge, Button, Group, Stack, Table, Text, VisuallyHidden } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconWebhook } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Deliveries, WebhookEndpoint } from '../answers.ts';
import { write } from '../api.ts';
import { localTime, plural } from '../format.ts';
import { FormDialog, useFormRequest } from './form-dialog.tsx';
import { PagedList, ScrollTable, usePages, whileOnePage } from './lists.tsx';
import { Card } from './page.tsx';
import { Empty, Failed } from './states.tsx';
import { Id, Time } from './values.tsx';

type Delivery = Deliveries['deliveries'][number];

const POLL_MS = 2_000;
const COLORS = { waiting: 'blue', delivered: 'green', failed: 'red' };
const WORDS = { waiting: 'Waiting', delivered: 'Delivered', failed: 'Failed' };

export function WebhookLog({ endpoint }: { readonly endpoint: WebhookEndpoint }) {
  const path = `/v1/webhook-endpoints/${endpoint.id}/deliveries`;
  const list = usePages<Deliveries>({
    queryKey: ['deliveries', endpoint.id],
    path: `${path}?limit=20`,
    pollMs: whileOnePage(POLL_MS),
  });
  const [chosen, setChosen] = useState<Delivery>();
  const deliveries = list.data?.pages.flatMap((page) => page.deliveries) ?? [];
  // As it is now: it may be delivered while its details are open. Newer events may have moved it to another page.
  const opened = deliveries.find(({ eventId }) => eventId === chosen?.eventId) ?? chosen;
  return (
    <Card title="Deliveries" flush aside={<Text className="breaks">{endpoint.url}</Text>}>
      <PagedList
        list={list}
        isEmpty={deliveries.length === 0}
        empty={
          <Empty icon={<IconWebhook size={22} />} title="Nothing has been sent yet">
            Send a test event, or wait for the first one.
          </Empty>
        }
      >
        <ScrollTable
          label="Deliveries"
          minWidth={280}
          head={
            <>
              <Table.Th>Event</Table.Th>
              <Table.Th>State</Table.Th>
              <Table.Th visibleFrom="sm">Response</Table.Th>
              <Table.Th aria-label="Actions" />
            </>
          }
        >
          {deliveries.map((delivery) => (
            <Table.Tr key={delivery.eventId}>
              <Table.Td>
                {delivery.payload.type}
                <Text size="xs" c="dimmed">
                  <Time iso={delivery.payload.timestamp} />
                </Text>
              </Table.Td>
              <Table.Td>
                <Badge variant="dot" color={COLORS[delivery.status]} tt="none" fw={500}>
                  {WORDS[delivery.status]}
                </Badge>
                <Text size="xs" c="dimmed">
                  {plural(delivery.attempts, 'attempt')}
                </Text>
              </Table.Td>
              <Table.Td visibleFrom="sm">{answerOf(delivery)}</Table.Td>
              <Table.Td ta="right">
                <Button size="xs" variant="default" onClick={() => setChosen(delivery)}>
                  Details{' '}
                  <VisuallyHidden>
                    of {delivery.payload.type}, {localTime(delivery.payload.timestamp)}
                  </VisuallyHidden>
                </Button>
              </Table.Td>
            </Table.Tr>
          ))}
        </ScrollTable>
      </PagedList>
      <FormDialog
        opened={opened !== undefined}
        onClose={() => setChosen(undefined)}
        title="Delivery"
      >
        {opened && (
          <Details
            delivery={opened}
            canSend={endpoint.status === 'active'}
            path={`${path}/${opened.eventId}/redeliver`}
            onDone={() => setChosen(undefined)}
          />
        )}
      </FormDialog>
    </Card>
  );
}

function answerOf({ responseStatus, failureReason, durationMs }: Delivery): string {
  if (responseStatus !== null) return `${responseStatus} in ${durationMs} ms`;
  return failureReason ?? 'None yet';
}

interface DetailsProps {
  readonly delivery: Delivery;
  readonly canSend: boolean;
  readonly path: string;
  readonly onDone: () => void;
}

function Details({ delivery, canSend, path, onDone }: DetailsProps) {
  const { eventId, payload, responseBody, nextAttemptAt } = delivery;
  const queries = useQueryClient();
  const send = useFormRequest({
    mutationFn: () => write(path),
    onSuccess: async () => {
      onDone();
      notifications.show({ message: 'The event will be sent again.' });
      await queries.invalidateQueries({ queryKey: ['deliveries'] });
    },
  });
  return (
    <Stack gap="md">
      <Id id={eventId} />
      <pre className="snippet breaks" style={{ whiteSpace: 'pre-wrap' }}>
        {JSON.stringify(payload, null, 2)}
      </pre>
      <Text size="sm">Response: {answerOf(delivery)}</Text>
      {responseBody !== null && responseBody !== '' && (
        <pre className="snippet breaks" style={{ whiteSpace: 'pre-wrap' }}>
          {responseBody}
        </pre>
      )}
      {nextAttemptAt !== null && (
        <Text size="sm">
          Next attempt <Time iso={nextAttemptAt} />
        </Text>
      )}
      {send.error && <Failed error={send.error} />}
      {!canSend && <Text size="sm">Enable the endpoint to send the event again.</Text>}
      <Group justify="flex-end">
        <Button disabled={!canSend} loading={send.isPending} onClick={() => send.mutate()}>
          Send again
        </Button>
      </Group>
    </Stack>
  );
}
