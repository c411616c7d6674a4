/** Lists, creates, rolls and revokes keys of one kind. A new key is shown once. */
import {
  ActionIcon,
  Badge,
  Button,
  Group,
  Menu,
  Select,
  Stack,
  Table,
  Text,
  TextInput,
} from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconDots, IconKey, IconPlus } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import type { Budget, Key, NewKey, SpendKeys } from '../answers.ts';
import { write } from '../api.ts';
import { keysRead } from '../page-reads.ts';
import { writeOnce } from '../retry-key.ts';
import { CancelButton, FormDialog, useFormRequest } from './form-dialog.tsx';
import { PagedList, ScrollTable, usePages, everyPage } from './lists.tsx';
import { Card } from './page.tsx';
import { RELEASE, ReleaseForm, ReleaseHolds } from './release-holds.tsx';
import { SecretModal } from './secret-modal.tsx';
import { Empty, Failed, Loaded } from './states.tsx';
import { Time } from './values.tsx';
import { useSession } from './shell.tsx';

const POLL_MS = 15_000;
/** Each process records uses every few seconds, so a key may have been used already. */
const NO_USE = 'No use recorded';

interface KeysProps {
  readonly kind: Key['kind'];
  readonly title: string;
  readonly empty: string;
  /** How to use a new key, shown below it. */
  readonly snippet?: (key: string) => ReactNode;
  /** Spend keys of this budget, in place of keys of the account. */
  readonly budget?: Pick<Budget, 'id' | 'status'>;
}

type Asked =
  | { readonly what: 'create'; readonly mode: Key['mode'] }
  | { readonly what: 'roll' | 'revoke' | 'release'; readonly key: Key };

export function KeyCard({ kind, title, empty, snippet, budget }: KeysProps) {
  const path = budget ? `/v1/budgets/${budget.id}/keys` : '/v1/keys';
  const [asked, setAsked] = useState<Asked>();
  const [made, setMade] = useState<NewKey>();
  const close = () => setAsked(undefined);
  const none = (
    <Empty icon={<IconKey size={22} />} title="No keys yet">
      {empty}
    </Empty>
  );
  const table = (keys: readonly Key[]) => (
    <KeyTable label={title} keys={keys} budgetStatus={budget?.status} onAsk={setAsked} />
  );
  const shown = (key: NewKey) => {
    setAsked(undefined);
    setMade(key);
  };
  return (
    <Card
      title={title}
      flush
      aside={
        (budget === undefined || budget.status === 'active') && (
          <Group gap="xs">
            {budget === undefined && kind !== 'legacy' && (
              <Button
                size="xs"
                variant="default"
                leftSection={<IconPlus size={14} />}
                onClick={() => setAsked({ what: 'create', mode: 'test' })}
              >
                {CREATE.test}
              </Button>
            )}
            <Button
              size="xs"
              leftSection={<IconPlus size={14} />}
              onClick={() => setAsked({ what: 'create', mode: 'live' })}
            >
              {CREATE.live}
            </Button>
          </Group>
        )
      }
    >
      {budget ? (
        <KeysOfBudget path={path} none={none} table={table} />
      ) : (
        <KeysOfAccount kind={kind} none={none} table={table} />
      )}
      <FormDialog
        opened={asked?.what === 'create'}
        onClose={close}
        title={asked?.what === 'create' ? CREATE[asked.mode] : ''}
      >
        {asked?.what === 'create' && (
          <CreateForm
            path={path}
            asked={budget ? {} : { kind, mode: asked.mode }}
            mode={asked.mode}
            onMade={shown}
          />
        )}
      </FormDialog>
      <FormDialog opened={asked?.what === 'roll'} onClose={close} title="Roll key">
        {asked?.what === 'roll' && <RollForm old={asked.key} onMade={shown} />}
      </FormDialog>
      <FormDialog opened={asked?.what === 'revoke'} onClose={close} title="Revoke key">
        {asked?.what === 'revoke' && <RevokeForm old={asked.key} onDone={close} />}
      </FormDialog>
      <FormDialog opened={asked?.what === 'release'} onClose={close} title={RELEASE}>
        {asked?.what === 'release' && (
          <ReleaseForm
            path={`/v1/keys/${asked.key.id}/revoke`}
            of={
              isOfAccount(asked.key)
                ? 'all your consumer keys'
                : `the key ending in ${asked.key.lastFour}`
            }
            isOfAccount={isOfAccount(asked.key)}
            onDone={close}
          />
        )}
      </FormDialog>
      <NewKeyModal made={made} onClose={() => setMade(undefined)} snippet={snippet} />
    </Card>
  );
}

interface ListProps {
  readonly none: ReactNode;
  readonly table: (keys: readonly Key[]) => ReactNode;
}

function KeysOfAccount({ kind, none, table }: ListProps & Pick<KeysProps, 'kind'>) {
  const keys = useQuery({ ...keysRead, refetchInterval: POLL_MS });
  return (
    <Loaded query={keys}>
      {({ keys: all }) => {
        const own = all.filter((key) => key.kind === kind).toReversed();
        return own.length === 0 ? none : table(own);
      }}
    </Loaded>
  );
}

/** Page by page: agents may have made very many. */
function KeysOfBudget({ path, none, table }: ListProps & { readonly path: string }) {
  const list = usePages<SpendKeys>({
    queryKey: ['keys', path],
    path: `${path}?limit=100`,
    pollMs: everyPage(POLL_MS),
  });
  const keys = list.data?.pages.flatMap((page) => page.keys) ?? [];
  return (
    <PagedList list={list} isEmpty={keys.length === 0} empty={none}>
      {table(keys)}
    </PagedList>
  );
}

/** A new key, this once. */
export function NewKeyModal({
  made,
  onClose,
  snippet,
}: {
  readonly made: NewKey | undefined;
  readonly onClose: () => void;
  readonly snippet?: KeysProps['snippet'] | undefined;
}) {
  return (
    <SecretModal title="Your new key" size="lg" what="key" secret={made?.key} onClose={onClose}>
      {made && snippet?.(made.key)}
    </SecretModal>
  );
}

function KeyTable({
  label,
  keys,
  budgetStatus,
  onAsk,
}: {
  readonly label: string;
  readonly keys: readonly Key[];
  readonly budgetStatus: Budget['status'] | undefined;
  readonly onAsk: (asked: Asked) => void;
}) {
  const prefix = useSession().data?.keyPrefix ?? '';
  return (
    <ScrollTable
      label={label}
      minWidth={280}
      maxHeight={480}
      head={
        <>
          <Table.Th>Name</Table.Th>
          <Table.Th visibleFrom="sm">Created</Table.Th>
          <Table.Th visibleFrom="xs">Last used</Table.Th>
          <Table.Th>State</Table.Th>
          <Table.Th aria-label="Actions" />
        </>
      }
    >
      {keys.map((key) => (
        <Table.Tr key={key.id}>
          <Table.Td>
            <Group gap={6} wrap="nowrap">
              <bdi className="one-line">{key.name ?? 'Unnamed key'}</bdi>
              {key.mode === 'test' && (
                <Badge variant="light" color="gray" tt="none" fw={500}>
                  Test
                </Badge>
              )}
            </Group>
            <Text size="xs" c="dimmed" className="id">
              {prefix}_{markOf(key)}_…{key.lastFour}
            </Text>
            <Text size="xs" c="dimmed" hiddenFrom="xs">
              {key.lastUsedAt === null ? (
                NO_USE
              ) : (
                <>
                  Used <Time iso={key.lastUsedAt} relative />
                </>
              )}
            </Text>
          </Table.Td>
          <Table.Td visibleFrom="sm">
            <Time iso={key.createdAt} relative />
          </Table.Td>
          <Table.Td visibleFrom="xs">
            {key.lastUsedAt === null ? NO_USE : <Time iso={key.lastUsedAt} relative />}
          </Table.Td>
          <Table.Td>
            <State of={key} budgetStatus={budgetStatus} />
          </Table.Td>
          <Table.Td ta="right">
            <Actions of={key} budgetStatus={budgetStatus} onAsk={onAsk} />
          </Table.Td>
        </Table.Tr>
      ))}
    </ScrollTable>
  );
}

const CREATE: Readonly<Record<Key['mode'], string>> = {
  live: 'Create key',
  test: 'Create test key',
};

function markOf({ kind, mode }: Key): string {
  if (kind === 'legacy') return 'sk';
  return `${kind === 'consumer' ? 'ck' : 'sk'}_${mode}`;
}

function isInForce({ revokedAt, expiresAt }: Key): boolean {
  return revokedAt === null && (expiresAt === null || Date.parse(expiresAt) > Date.now());
}

/** Not a spend key. */
function isOfAccount({ budgetId }: Key): boolean {
  return budgetId === undefined;
}

interface KeyProps {
  readonly of: Key;
  /** The status of a spend key's budget. */
  readonly budgetStatus: Budget['status'] | undefined;
}

/** Why the key cannot be used; undefined while it can. */
function endOf({ of: key, budgetStatus = 'active' }: KeyProps): string | undefined {
  if (key.revokedAt !== null) return 'Revoked';
  if (!isInForce(key)) return 'Expired';
  return budgetStatus === 'active' ? undefined : `Budget ${budgetStatus}`;
}

function State({ of: key, budgetStatus }: KeyProps) {
  const end = endOf({ of: key, budgetStatus });
  if (end !== undefined) {
    return (
      <Badge variant="dot" color="gray" tt="none" fw={500}>
        {end}
      </Badge>
    );
  }
  return (
    <>
      <Badge variant="dot" color={key.expiresAt === null ? 'green' : 'orange'} tt="none" fw={500}>
        {key.expiresAt === null ? 'Active' : 'Expiring'}
      </Badge>
      {key.expiresAt !== null && (
        <Text size="xs" c="dimmed">
          Works until <Time iso={key.expiresAt} />
        </Text>
      )}
    </>
  );
}

function Actions({
  of: key,
  budgetStatus,
  onAsk,
}: KeyProps & { readonly onAsk: (asked: Asked) => void }) {
  const mayRoll = endOf({ of: key, budgetStatus }) === undefined;
  // The budget of a key can get a later expiry, but stays closed.
  const mayRevoke = isInForce(key) && budgetStatus !== 'closed';
  if (!mayRevoke && key.kind !== 'consumer') return null;
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={`Actions for ${key.name ?? 'key'} ending in ${key.lastFour}`}
        >
          <IconDots size={18} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {mayRoll && <Menu.Item onClick={() => onAsk({ what: 'roll', key })}>Roll key</Menu.Item>}
        {mayRevoke ? (
          <Menu.Item color="red.9" onClick={() => onAsk({ what: 'revoke', key })}>
            Revoke key
          </Menu.Item>
        ) : (
          <Menu.Item onClick={() => onAsk({ what: 'release', key })}>{RELEASE}</Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}

function CreateForm({
  path,
  asked,
  mode,
  onMade,
}: {
  readonly path: string;
  readonly asked: object;
  readonly mode: Key['mode'];
  readonly onMade: (key: NewKey) => void;
}) {
  const [name, setName] = useState('');
  const queries = useQueryClient();
  const create = useFormRequest({
    mutationFn: () =>
      writeOnce<NewKey>(path, { ...asked, ...(name.trim() === '' ? {} : { name: name.trim() }) }),
    onSuccess: async (key) => {
      onMade(key);
      await queries.invalidateQueries({ queryKey: ['keys'] });
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
        {mode === 'test' && (
          <Text>
            A test key works with other test keys only. It spends play money, which a top-up adds
            without a payment.
          </Text>
        )}
        <TextInput
          label="Name"
          description="Where you use it, such as Claude Code or production."
          maxLength={100}
          data-autofocus
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        {create.error && <Failed error={create.error} />}
        <Group justify="flex-end">
          <Button type="submit" loading={create.isPending}>
            {CREATE[mode]}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

const OVERLAPS = [
  { value: '0', label: 'Now' },
  { value: '3600', label: 'In 1 hour' },
  { value: '86400', label: 'In 24 hours' },
  { value: '604800', label: 'In 7 days' },
];

function RollForm({ old, onMade }: { readonly old: Key; readonly onMade: (key: NewKey) => void }) {
  const [overlap, setOverlap] = useState('86400');
  const queries = useQueryClient();
  const roll = useFormRequest({
    mutationFn: () =>
      writeOnce<NewKey>(`/v1/keys/${old.id}/roll`, { overlapSeconds: Number(overlap) }),
    onSuccess: onMade,
    onSettled: () => queries.invalidateQueries({ queryKey: ['keys'] }),
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        roll.mutate();
      }}
    >
      <Stack gap="md">
        <Text>A new key replaces this one. Both work until the old key expires.</Text>
        <Select
          label="Old key expires"
          data={OVERLAPS}
          value={overlap}
          allowDeselect={false}
          onChange={(value) => setOverlap(value ?? '0')}
        />
        {roll.error && <Failed error={roll.error} />}
        <Group justify="flex-end">
          <Button type="submit" loading={roll.isPending}>
            Roll key
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function RevokeForm({ old, onDone }: { readonly old: Key; readonly onDone: () => void }) {
  const [releaseHolds, setReleaseHolds] = useState(false);
  const queries = useQueryClient();
  const revoke = useFormRequest({
    mutationFn: () => write(`/v1/keys/${old.id}/revoke`, { releaseHolds }),
    onSuccess: () => {
      notifications.show({ message: 'The key was revoked.' });
      onDone();
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ['keys'] }),
  });
  return (
    <Stack gap="md">
      <Text>
        The key ending in <b>{old.lastFour}</b> stops working within a second. This cannot be
        undone.
      </Text>
      {old.kind === 'consumer' && (
        <ReleaseHolds
          value={releaseHolds}
          onChange={setReleaseHolds}
          isOfAccount={isOfAccount(old)}
        />
      )}
      {revoke.error && <Failed error={revoke.error} />}
      <Group justify="flex-end">
        <CancelButton />
        <Button color="red.9" loading={revoke.isPending} onClick={() => revoke.mutate()}>
          Revoke key
        </Button>
      </Group>
    </Stack>
  );
}
