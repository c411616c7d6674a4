/** The table of webhook endpoints, with what can be done with each. */
import { ActionIcon, Badge, Button, Group, Menu, Stack, Table, Text } from '@mantine/core';
import { IconDots } from '@tabler/icons-react';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { RolledSecret, WebhookEndpoint } from '../answers.ts';
import { write } from '../api.ts';
import { writeOnce } from '../retry-key.ts';
import { plural } from '../format.ts';
import { CancelButton, FormDialog, useFormRequest } from './form-dialog.tsx';
import { ScrollTable } from './lists.tsx';
import { showFailure } from './show-failure.ts';
import { Failed } from './states.tsx';
import { Time } from './values.tsx';

interface TableProps {
  readonly endpoints: readonly WebhookEndpoint[];
  readonly onSecret: (secret: string) => void;
  readonly onLog: (endpoint: WebhookEndpoint) => void;
  readonly onDeleted: () => void;
}

export function EndpointTable({ endpoints, ...actions }: TableProps) {
  return (
    <ScrollTable
      label="Endpoints"
      minWidth={280}
      head={
        <>
          <Table.Th>Endpoint</Table.Th>
          <Table.Th visibleFrom="sm">Events</Table.Th>
          <Table.Th>State</Table.Th>
          <Table.Th aria-label="Actions" />
        </>
      }
    >
      {endpoints.map((endpoint) => (
        <Table.Tr key={endpoint.id}>
          <Table.Td>
            <bdi className="breaks">{endpoint.url}</bdi>
            <Text size="xs" c="dimmed" className="breaks">
              {endpoint.description}
            </Text>
          </Table.Td>
          <Table.Td visibleFrom="sm">
            {endpoint.types === null ? 'All' : plural(endpoint.types.length, 'type')}
          </Table.Td>
          <Table.Td>
            <State of={endpoint} />
          </Table.Td>
          <Table.Td ta="right">
            <Actions of={endpoint} {...actions} />
          </Table.Td>
        </Table.Tr>
      ))}
    </ScrollTable>
  );
}

const REASONS = {
  owner: 'By you',
  failing: 'It failed for five days',
  gone: 'It responded with 410',
};

function State({ of: { status, disabledReason, failingSince } }: { readonly of: WebhookEndpoint }) {
  const isActive = status === 'active';
  const color = isActive ? (failingSince === null ? 'green' : 'orange') : 'gray';
  const word = isActive ? (failingSince === null ? 'Active' : 'Failing') : 'Disabled';
  return (
    <>
      <Badge variant="dot" color={color} tt="none" fw={500}>
        {word}
      </Badge>
      {isActive && failingSince !== null && (
        <Text size="xs" c="dimmed">
          Since <Time iso={failingSince} relative />
        </Text>
      )}
      {disabledReason !== null && (
        <Text size="xs" c="dimmed">
          {REASONS[disabledReason]}
        </Text>
      )}
    </>
  );
}

type ActionsProps = Omit<TableProps, 'endpoints'> & { readonly of: WebhookEndpoint };

/** What cannot be undone, so that it is asked first. */
type Asked = 'roll' | 'delete';

const QUESTIONS: Readonly<Record<Asked, { readonly title: string; readonly text: string }>> = {
  roll: {
    title: 'Roll secret',
    text: 'A new secret replaces this one. Requests are signed with both for 24 hours, so give the new one to your receiver before then.',
  },
  delete: {
    title: 'Delete endpoint',
    text: 'Farebox sends no more events to this endpoint, not even those that are being retried. Its delivery log is deleted. This cannot be undone.',
  },
};

function Actions({ of: endpoint, onSecret, onLog, onDeleted }: ActionsProps) {
  const [asked, setAsked] = useState<Asked>();
  const refresh = useRefresh();
  const path = `/v1/webhook-endpoints/${endpoint.id}`;
  const isActive = endpoint.status === 'active';
  const act = useMutation({
    mutationFn: async (work: () => Promise<unknown>) => work(),
    onSuccess: refresh,
    onError: ({ message }) => showFailure(message),
  });
  const test = async () => {
    await write(`${path}/test`);
    onLog(endpoint);
  };
  const work: Readonly<Record<Asked, () => Promise<void>>> = {
    roll: async () => onSecret((await writeOnce<RolledSecret>(`${path}/roll-secret`)).secret),
    delete: async () => {
      await write(path, {}, { method: 'DELETE' });
      onDeleted();
    },
  };
  const enable = () => write(path, { enabled: !isActive }, { method: 'PATCH' });
  const close = () => setAsked(undefined);
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${endpoint.url}`}>
            <IconDots size={18} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => onLog(endpoint)}>Show deliveries</Menu.Item>
          <Menu.Item disabled={!isActive} onClick={() => act.mutate(test)}>
            Send test event
          </Menu.Item>
          <Menu.Item onClick={() => setAsked('roll')}>Roll secret</Menu.Item>
          <Menu.Item onClick={() => act.mutate(enable)}>
            {isActive ? 'Disable' : 'Enable'}
          </Menu.Item>
          <Menu.Item color="red.9" onClick={() => setAsked('delete')}>
            Delete
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <FormDialog
        opened={asked !== undefined}
        onClose={close}
        title={asked && QUESTIONS[asked].title}
      >
        {asked && <Question of={endpoint} asked={asked} work={work[asked]} onClose={close} />}
      </FormDialog>
    </>
  );
}

interface QuestionProps {
  readonly of: WebhookEndpoint;
  readonly asked: Asked;
  readonly work: () => Promise<void>;
  readonly onClose: () => void;
}

function Question({ of: endpoint, asked, work, onClose }: QuestionProps) {
  const refresh = useRefresh();
  const { title, text } = QUESTIONS[asked];
  const act = useFormRequest({
    mutationFn: work,
    onSuccess: async () => {
      onClose();
      await refresh();
    },
  });
  return (
    <Stack gap="md">
      <Text fw={600} className="breaks">
        <bdi>{endpoint.url}</bdi>
      </Text>
      <Text>{text}</Text>
      {act.error && <Failed error={act.error} />}
      <Group justify="flex-end">
        <CancelButton />
        <Button
          {...(asked === 'delete' && { color: 'red.9' })}
          loading={act.isPending}
          onClick={() => act.mutate()}
        >
          {title}
        </Button>
      </Group>
    </Stack>
  );
}

function useRefresh(): () => Promise<unknown> {
  const queries = useQueryClient();
  return () =>
    Promise.all(
      ['webhook-endpoints', 'deliveries'].map((key) =>
        queries.invalidateQueries({ queryKey: [key] }),
      ),
    );
}
