/** Creates a budget, with a first spend key, or changes the limits of one. */
import { Button, Group, Select, Stack, Switch, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Budget, NewKey } from '../answers.ts';
import { read, write } from '../api.ts';
import { changesOf } from '../changes.ts';
import { inWordsOfForm } from '../field-labels.ts';
import { instantOf, localOf } from '../local-time.ts';
import { sendOnce } from '../retry-key.ts';
import { DollarsInput } from './dollars-input.tsx';
import { useFormRequest } from './form-dialog.tsx';
import { Failed } from './states.tsx';

const UNITS = [
  { value: 'hour', label: 'Hour' },
  { value: 'day', label: 'Day' },
  { value: 'week', label: 'Week, from Monday' },
  { value: 'month', label: 'Month' },
];

/** Dollars and a local time as they were typed; empty: no limit, no end. */
interface Draft {
  readonly name: string;
  readonly limit: string;
  readonly per: string;
  readonly windowLimit: string;
  readonly maxPerCall: string;
  readonly expiresAt: string;
  readonly approveDevelopers: boolean;
  readonly mayDelegate: boolean;
}

function draftOf(budget?: Budget): Draft {
  return {
    name: budget?.name ?? '',
    limit: textOf(budget?.limit),
    per: budget?.window?.per ?? 'day',
    windowLimit: textOf(budget?.window?.limit),
    maxPerCall: textOf(budget?.maxPerCall),
    expiresAt: localOf(budget?.expiresAt),
    approveDevelopers: budget?.approveDevelopers ?? false,
    mayDelegate: budget?.mayDelegate ?? false,
  };
}

function textOf(dollars: number | null | undefined): string {
  return dollars === null || dollars === undefined ? '' : String(dollars);
}

function dollars(text: string): string | null {
  return text.trim() === '' ? null : text.trim();
}

function bodyOf({ name, limit, per, windowLimit, maxPerCall, expiresAt, ...rules }: Draft) {
  const each = dollars(windowLimit);
  return {
    name: name.trim(),
    limit: dollars(limit),
    window: each === null ? null : { per, limit: each },
    maxPerCall: dollars(maxPerCall),
    expiresAt: instantOf(expiresAt),
    ...rules,
  };
}

/** The budget, and a key that was made with it. */
export function CreateBudgetForm({
  parentId,
  onMade,
}: {
  readonly parentId: string | undefined;
  readonly onMade: (budget: Budget, key: NewKey) => void;
}) {
  const [draft, setDraft] = useState(draftOf());
  const queries = useQueryClient();
  const create = useFormRequest({
    mutationFn: () => {
      const body = { ...bodyOf(draft), ...(parentId !== undefined && { parentId }) };
      return sendOnce('/v1/budgets', async (idempotencyKey) => {
        const budget = await write<Budget>('/v1/budgets', body, { idempotencyKey });
        const path = `/v1/budgets/${budget.id}/keys`;
        return { budget, key: await write<NewKey>(path, { name: body.name }, { idempotencyKey }) };
      });
    },
    onSuccess: ({ budget, key }) => onMade(budget, key),
    onSettled: () => queries.invalidateQueries({ queryKey: ['budgets'] }),
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate();
      }}
    >
      <Stack gap="md">
        <Fields draft={draft} onDraft={setDraft} />
        {create.error && <Failed error={create.error} message={inWordsOfForm(create.error)} />}
        <Group justify="flex-end">
          <Button type="submit" loading={create.isPending} disabled={draft.name.trim() === ''}>
            Create budget and key
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

export function ChangeBudgetForm({
  budget,
  onDone,
}: {
  readonly budget: Budget;
  readonly onDone: () => void;
}) {
  const [opened] = useState(draftOf(budget));
  const [draft, setDraft] = useState(opened);
  const queries = useQueryClient();
  const change = useFormRequest({
    mutationFn: async () => {
      const path = `/v1/budgets/${budget.id}`;
      // Two fields make one member, the window. Another tab may have changed the one that this user did not.
      const now = draftOf(await read<Budget>(path));
      const changes = changesOf(bodyOf(now), bodyOf({ ...now, ...changesOf(opened, draft) }));
      return write<Budget>(path, changes, { method: 'PATCH' });
    },
    onSuccess: () => {
      notifications.show({ message: 'The budget was changed.' });
      onDone();
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ['budgets'] }),
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate();
      }}
    >
      <Stack gap="md">
        <Fields draft={draft} onDraft={setDraft} />
        {change.error && <Failed error={change.error} message={inWordsOfForm(change.error)} />}
        <Group justify="flex-end">
          <Button type="submit" loading={change.isPending} disabled={draft.name.trim() === ''}>
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function Fields({
  draft,
  onDraft,
}: {
  readonly draft: Draft;
  readonly onDraft: (draft: Draft) => void;
}) {
  const set = (changes: Partial<Draft>) => onDraft({ ...draft, ...changes });
  return (
    <>
      <TextInput
        label="Name"
        description="Who spends it, such as Claude Code or a project."
        maxLength={100}
        data-autofocus
        value={draft.name}
        onChange={(event) => set({ name: event.currentTarget.value })}
      />
      <DollarsInput
        label="Total limit"
        description="Leave a field empty for no limit."
        value={draft.limit}
        onValue={(limit) => set({ limit })}
      />
      <Group grow align="flex-end">
        <DollarsInput
          label="Limit in each"
          value={draft.windowLimit}
          onValue={(windowLimit) => set({ windowLimit })}
        />
        <Select
          aria-label="Period"
          data={UNITS}
          value={draft.per}
          allowDeselect={false}
          onChange={(per) => set({ per: per ?? 'day' })}
        />
      </Group>
      <DollarsInput
        label="Limit for one call"
        value={draft.maxPerCall}
        onValue={(maxPerCall) => set({ maxPerCall })}
      />
      <TextInput
        label="Works until"
        type="datetime-local"
        max="9999-12-31T23:59"
        value={draft.expiresAt}
        onChange={(event) => set({ expiresAt: event.currentTarget.value })}
      />
      <Switch
        label="A developer needs your approval before its first charge"
        checked={draft.approveDevelopers}
        onChange={(event) => set({ approveDevelopers: event.currentTarget.checked })}
      />
      <Switch
        label="Its keys may create budgets and keys below it"
        checked={draft.mayDelegate}
        onChange={(event) => set({ mayDelegate: event.currentTarget.checked })}
      />
    </>
  );
}
