/** What the consumer keys of the account may be charged: nothing, or up to a daily limit for each developer. */
import { Button, Group, Stack, Switch, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { AccountKeys } from '../answers.ts';
import { read, write } from '../api.ts';
import { changesOf } from '../changes.ts';
import { DollarsInput } from './dollars-input.tsx';
import { Card } from './page.tsx';
import { Failed, Loaded } from './states.tsx';

export function AccountKeysCard() {
  const settings = useQuery({
    queryKey: ['account-keys'],
    queryFn: () => read<AccountKeys>('/v1/account-keys'),
  });
  return (
    <Card title="Limits of these keys">
      <Loaded query={settings}>{(now) => <SettingsForm now={now} />}</Loaded>
    </Card>
  );
}

function bodyOf(isOpen: boolean, limit: string) {
  return {
    charge: isOpen ? 'open' : 'closed',
    developerDayLimit: limit.trim() === '' ? null : limit.trim(),
  };
}

function SettingsForm({ now }: { readonly now: AccountKeys }) {
  const [opened, setOpened] = useState(now);
  const [isOpen, setOpen] = useState(opened.charge === 'open');
  const before = opened.developerDayLimit === null ? '' : String(opened.developerDayLimit);
  const [limit, setLimit] = useState(before);
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: () => {
      const changes = changesOf(bodyOf(opened.charge === 'open', before), bodyOf(isOpen, limit));
      return write<AccountKeys>('/v1/account-keys', changes, { method: 'PATCH' });
    },
    onSuccess: (saved) => {
      setOpened(saved);
      queries.setQueryData(['account-keys'], saved);
      notifications.show({ message: 'Saved. It applies within a second.' });
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate();
      }}
    >
      <Stack gap="md">
        <Switch
          label="Tools can charge consumer keys"
          description="When this is off, tools can charge only spend keys."
          checked={isOpen}
          onChange={(event) => setOpen(event.currentTarget.checked)}
        />
        <DollarsInput
          label="Daily limit for each developer (UTC)"
          description="Leave it empty for no limit."
          maw={320}
          disabled={!isOpen}
          value={limit}
          onValue={setLimit}
        />
        <Text size="sm" c="dimmed">
          The first charge of a developer creates a budget for it, which you can change under
          Budgets.
        </Text>
        {save.error && <Failed error={save.error} />}
        <Group>
          <Button type="submit" variant="default" loading={save.isPending}>
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
