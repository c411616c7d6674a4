/** What the consumer keys of the account may be charged: nothing, or up to a daily limit for each developer. */
import { Button, Group, Stack, Switch, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { AccountKeys } from '../answers.ts';
import { read, write } from '../api.ts';
import { changesOf } from '../changes.ts';
import { showAnswer } from '../show-answer.ts';
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

/** The form's fields. An empty limit is none. */
interface Draft {
  readonly isOpen: boolean;
  readonly limit: string;
}

function draftOf({ charge, developerDayLimit }: AccountKeys): Draft {
  return {
    isOpen: charge === 'open',
    limit: developerDayLimit === null ? '' : String(developerDayLimit),
  };
}

function bodyOf({ isOpen, limit }: Draft) {
  return {
    charge: isOpen ? 'open' : 'closed',
    developerDayLimit: limit.trim() === '' ? null : limit.trim(),
  };
}

function SettingsForm({ now }: { readonly now: AccountKeys }) {
  const [opened, setOpened] = useState(draftOf(now));
  const [draft, setDraft] = useState(opened);
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: () => {
      const changes = changesOf(bodyOf(opened), bodyOf(draft));
      return write<AccountKeys>('/v1/account-keys', changes, { method: 'PATCH' });
    },
    onSuccess: async (saved) => {
      // With what another tab changed: otherwise the next save would undo that.
      setOpened(draftOf(saved));
      setDraft(draftOf(saved));
      await showAnswer(queries, ['account-keys'], saved);
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
          checked={draft.isOpen}
          onChange={(event) => setDraft({ ...draft, isOpen: event.currentTarget.checked })}
        />
        <DollarsInput
          label="Daily limit for each developer (UTC)"
          description="Leave it empty for no limit."
          maw={320}
          disabled={!draft.isOpen}
          value={draft.limit}
          onValue={(limit) => setDraft({ ...draft, limit })}
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
