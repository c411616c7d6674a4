/** What the consumer keys of the account may be charged: nothing, or up to a daily limit for each developer. */
import { Button, Group, Stack, Switch, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { AccountKeys } from '../answers.ts';
import { read, write } from '../api.ts';
import { changesOf } from '../changes.ts';
import { useEdits } from '../edits.ts';
import { inWordsOfForm } from '../field-labels.ts';
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
  const { draft, edit, forget } = useEdits(draftOf(now));
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: (sent: typeof draft) => {
      const changes = changesOf(bodyOf(draftOf(now)), bodyOf(sent));
      return write<AccountKeys>('/v1/account-keys', changes, { method: 'PATCH' });
    },
    onSuccess: async (saved, sent) => {
      await showAnswer(queries, ['account-keys'], saved);
      forget(sent);
      notifications.show({ message: 'Saved. It applies within a second.' });
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate(draft);
      }}
    >
      <Stack gap="md">
        <Switch
          label="Tools can charge consumer keys"
          description="When this is off, tools can charge only spend keys."
          checked={draft.isOpen}
          onChange={(event) => edit({ isOpen: event.currentTarget.checked })}
        />
        <DollarsInput
          label="Daily limit for each developer (UTC)"
          description="Leave it empty for no limit."
          maw={320}
          disabled={!draft.isOpen}
          value={draft.limit}
          onValue={(limit) => edit({ limit })}
        />
        <Text size="sm" c="dimmed">
          The first charge of a developer creates a budget for it, which you can change under
          Budgets. If you close it, the developer cannot charge consumer keys, even without a limit,
          until you allow it again there.
        </Text>
        {save.error && <Failed error={save.error} message={inWordsOfForm(save.error)} />}
        <Group>
          <Button type="submit" variant="default" loading={save.isPending}>
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
