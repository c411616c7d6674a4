/** The passkeys of a user: the list, adding one with this browser, and removing one. */
import { Button, Group, Stack, Table, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconFingerprint } from '@tabler/icons-react';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { auth } from '../api.ts';
import { addPasskey, hasPasskeys } from '../passkeys.ts';
import { CancelButton, FormDialog, useFormRequest } from './form-dialog.tsx';
import { ScrollTable } from './lists.tsx';
import { Card } from './page.tsx';
import { Empty, Failed, Loaded } from './states.tsx';
import { Time } from './values.tsx';

interface Passkey {
  readonly id: string;
  readonly name?: string | null;
  readonly createdAt: string;
}

const NAME_LENGTH_MAX = 100;

export function Passkeys() {
  const [asked, setAsked] = useState<Passkey>();
  const passkeys = useQuery({
    queryKey: ['passkeys'],
    queryFn: () => auth<readonly Passkey[]>('/passkey/list-user-passkeys'),
  });
  return (
    <Card title="Passkeys" flush>
      <Loaded query={passkeys}>
        {(list) =>
          list.length === 0 ? (
            <Empty icon={<IconFingerprint size={22} />} title="No passkeys yet">
              A passkey signs you in with this device’s PIN, fingerprint or face, without a password
              or a code.
            </Empty>
          ) : (
            <ScrollTable
              label="Passkeys"
              minWidth={280}
              head={
                <>
                  <Table.Th>Name</Table.Th>
                  <Table.Th>Added</Table.Th>
                  <Table.Th aria-label="Actions" />
                </>
              }
            >
              {list.map((passkey) => (
                <Table.Tr key={passkey.id}>
                  <Table.Td className="breaks">{nameOf(passkey.name)}</Table.Td>
                  <Table.Td>
                    <Time iso={passkey.createdAt} relative />
                  </Table.Td>
                  <Table.Td ta="right">
                    <Button
                      size="xs"
                      variant="default"
                      aria-label={`Remove ${nameOf(passkey.name)}`}
                      onClick={() => setAsked(passkey)}
                    >
                      Remove
                    </Button>
                  </Table.Td>
                </Table.Tr>
              ))}
            </ScrollTable>
          )
        }
      </Loaded>
      <AddPasskey />
      <FormDialog
        opened={asked !== undefined}
        onClose={() => setAsked(undefined)}
        title="Remove passkey"
      >
        {asked && <RemoveForm passkey={asked} onDone={() => setAsked(undefined)} />}
      </FormDialog>
    </Card>
  );
}

function RemoveForm({
  passkey: { id, name },
  onDone,
}: {
  readonly passkey: Passkey;
  readonly onDone: () => void;
}) {
  const queries = useQueryClient();
  const remove = useFormRequest({
    mutationFn: () => auth('/passkey/delete-passkey', { id }),
    onSuccess: () => {
      notifications.show({ message: 'The passkey was removed.' });
      onDone();
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ['passkeys'] }),
  });
  return (
    <Stack gap="md">
      <Text className="breaks">
        <b>{nameOf(name)}</b> will not sign you in anymore. This cannot be undone.
      </Text>
      {remove.error && <Failed error={remove.error} />}
      <Group justify="flex-end">
        <CancelButton />
        <Button color="red.9" loading={remove.isPending} onClick={() => remove.mutate()}>
          Remove passkey
        </Button>
      </Group>
    </Stack>
  );
}

function AddPasskey() {
  const queries = useQueryClient();
  const [name, setName] = useState('');
  const add = useMutation({
    mutationFn: () => addPasskey(name.trim()),
    onSuccess: () => {
      setName('');
      notifications.show({ message: 'The passkey was added.' });
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ['passkeys'] }),
  });
  if (!hasPasskeys()) {
    return (
      <Text c="dimmed" size="sm" p="lg">
        This browser does not support passkeys.
      </Text>
    );
  }
  return (
    <form
      className="flush-foot"
      onSubmit={(event) => {
        event.preventDefault();
        add.mutate();
      }}
    >
      <Group align="flex-end" gap="sm">
        <TextInput
          label="Name of the new passkey"
          placeholder="MacBook"
          style={{ flex: '1 1 220px', maxWidth: 320 }}
          required
          withAsterisk={false}
          maxLength={NAME_LENGTH_MAX}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Button type="submit" variant="default" loading={add.isPending}>
          Add passkey
        </Button>
      </Group>
      {add.error && <Failed error={add.error} />}
    </form>
  );
}

function nameOf(name: string | null | undefined): string {
  return name || 'Unnamed passkey';
}
