/** The password, the passkeys, two-factor authentication and the sessions of a user. */
import {
  Alert,
  Badge,
  Button,
  Code,
  Group,
  PasswordInput,
  Stack,
  Table,
  Text,
  TextInput,
  VisuallyHidden,
} from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ApiFailure, auth, continueSession } from '../api.ts';
import { ScrollTable } from '../parts/lists.tsx';
import { Card, Page } from '../parts/page.tsx';
import { Passkeys } from '../parts/passkeys.tsx';
import { Failed, Loaded } from '../parts/states.tsx';
import { useSession } from '../parts/shell.tsx';
import { CopyText, Time } from '../parts/values.tsx';

interface SignedIn {
  readonly session: { readonly token: string };
  readonly user: { readonly twoFactorEnabled?: boolean | null };
}

interface ListedSession {
  readonly token: string;
  readonly ipAddress?: string | null;
  readonly userAgent?: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

function useSignedIn() {
  return useQuery({ queryKey: ['signed-in'], queryFn: () => auth<SignedIn>('/get-session') });
}

export function SecurityPage() {
  const email = useSession().data?.email ?? '';
  return (
    <Page title="Security" intro={email}>
      <Password email={email} />
      <Passkeys />
      <SecondFactor />
      <Sessions />
    </Page>
  );
}

function Password({ email }: { readonly email: string }) {
  const send = useMutation({
    mutationFn: () => auth('/request-password-reset', { email }),
    onSuccess: () => notifications.show({ message: 'Check your email for the link.' }),
  });
  return (
    <Card title="Password">
      <Text c="dimmed" mb="md">
        We email you a link to choose a new password. Using it signs you out everywhere. Passkeys
        stay: remove those that are not yours.
      </Text>
      <Button variant="default" loading={send.isPending} onClick={() => send.mutate()}>
        Send link
      </Button>
      {send.error && <Failed error={send.error} />}
    </Card>
  );
}

/** A change that replaces the session, whether or not its answer arrives. */
async function replaceSession(path: string, body: object): Promise<void> {
  try {
    await auth(path, body);
  } finally {
    await continueSession();
  }
}

interface Enrollment {
  readonly totpURI: string;
  readonly backupCodes: readonly string[];
}

function SecondFactor() {
  const signedIn = useSignedIn();
  const queries = useQueryClient();
  const [password, setPassword] = useState('');
  const [code, setCode] = useState('');
  const isOn = signedIn.data?.user.twoFactorEnabled === true;
  const done = (message: string) => {
    notifications.show({ message });
    setPassword('');
    setCode('');
    enable.reset();
  };
  // The change replaces this session, and turning it on ends the others.
  const onSettled = () =>
    Promise.all(
      ['signed-in', 'sessions'].map((key) => queries.invalidateQueries({ queryKey: [key] })),
    );
  const enable = useMutation({
    mutationFn: () => auth<Enrollment>('/two-factor/enable', { password }),
  });
  const confirm = useMutation({
    mutationFn: () => replaceSession('/two-factor/verify-totp', { code: code.replaceAll(' ', '') }),
    onSuccess: () => done('Two-factor authentication is on. Your other sessions were signed out.'),
    onSettled,
  });
  const disable = useMutation({
    mutationFn: () => replaceSession('/two-factor/disable', { password }),
    onSuccess: () => done('Two-factor authentication is off.'),
    onSettled,
  });
  const startAgain = () => {
    setCode('');
    enable.reset();
    confirm.reset();
  };
  const error = enable.error ?? confirm.error ?? disable.error;
  const isRefused = confirm.error instanceof ApiFailure && confirm.error.code === 'INVALID_CODE';
  const secret = enable.data && new URL(enable.data.totpURI).searchParams.get('secret');
  return (
    <Card
      title="Two-factor authentication"
      aside={
        signedIn.data && (
          <Badge variant="dot" color={isOn ? 'green' : 'gray'} tt="none" fw={500}>
            {isOn ? 'On' : 'Off'}
          </Badge>
        )
      }
    >
      <Loaded query={signedIn}>
        {() => (
          <Stack gap="md">
            {enable.data && secret && !isOn ? (
              <form
                onSubmit={(event) => {
                  event.preventDefault();
                  confirm.mutate();
                }}
              >
                <Stack gap="sm">
                  <Text>
                    Add this secret to your authenticator app, then enter the code that it shows.
                  </Text>
                  <Group gap="xs">
                    <Code className="breaks">{secret}</Code>
                    <CopyText value={secret} label="Copy secret" />
                  </Group>
                  <Alert color="orange" title="Backup codes">
                    <Text size="sm" mb="xs">
                      Store these codes now: they are not shown again. If you lose the app, each of
                      these signs you in once: {enable.data.backupCodes.join(', ')}
                    </Text>
                    <CopyText
                      value={enable.data.backupCodes.join('\n')}
                      label="Copy backup codes"
                    />
                  </Alert>
                  <TextInput
                    label="Code"
                    inputMode="numeric"
                    autoComplete="one-time-code"
                    maw={200}
                    value={code}
                    onChange={(event) => setCode(event.currentTarget.value)}
                  />
                  <Group>
                    <Button type="submit" loading={confirm.isPending}>
                      Turn on
                    </Button>
                    <Button variant="subtle" onClick={startAgain}>
                      Start again
                    </Button>
                  </Group>
                </Stack>
              </form>
            ) : (
              <form
                onSubmit={(event) => {
                  event.preventDefault();
                  if (isOn) disable.mutate();
                  else enable.mutate();
                }}
              >
                <Group align="flex-end" gap="sm">
                  <PasswordInput
                    label="Your password"
                    autoComplete="current-password"
                    style={{ flex: '1 1 220px', maxWidth: 320 }}
                    required
                    withAsterisk={false}
                    value={password}
                    onChange={(event) => setPassword(event.currentTarget.value)}
                  />
                  <Button
                    type="submit"
                    variant="default"
                    loading={enable.isPending || disable.isPending}
                  >
                    {isOn ? 'Turn off' : 'Set up'}
                  </Button>
                </Group>
                {isOn && (
                  <Text size="sm" c="dimmed" mt="sm">
                    To use another authenticator app, or to get new backup codes, turn it off and
                    set it up again.
                  </Text>
                )}
              </form>
            )}
            {error && <Failed error={error} />}
            {isRefused && (
              <Text size="sm" c="dimmed">
                If you have started the setup again, in this tab or another one, only the newest
                secret works.
              </Text>
            )}
          </Stack>
        )}
      </Loaded>
    </Card>
  );
}

function Sessions() {
  const queries = useQueryClient();
  const own = useSignedIn().data?.session.token;
  const sessions = useQuery({
    queryKey: ['sessions'],
    queryFn: () => auth<readonly ListedSession[]>('/list-sessions'),
  });
  const end = useMutation({
    mutationFn: (token: string) => auth('/revoke-session', { token }),
    onSettled: () => queries.invalidateQueries({ queryKey: ['sessions'] }),
  });
  const endOthers = useMutation({
    mutationFn: () => auth('/revoke-other-sessions', {}),
    onSuccess: () => notifications.show({ message: 'All other sessions were signed out.' }),
    onSettled: () => queries.invalidateQueries({ queryKey: ['sessions'] }),
  });
  return (
    <Card
      title="Sessions"
      flush
      aside={
        <Button
          size="xs"
          variant="default"
          loading={endOthers.isPending}
          onClick={() => endOthers.mutate()}
        >
          Sign out everywhere else
        </Button>
      }
    >
      {(end.error ?? endOthers.error) && <Failed error={(end.error ?? endOthers.error) as Error} />}
      <Loaded query={sessions}>
        {(list) => (
          <ScrollTable
            label="Sessions"
            minWidth={280}
            head={
              <>
                <Table.Th>Browser</Table.Th>
                <Table.Th visibleFrom="xs">Signed in</Table.Th>
                <Table.Th aria-label="Actions" />
              </>
            }
          >
            {list.map((session) => (
              <Table.Tr key={session.token}>
                <Table.Td>
                  {browserOf(session.userAgent ?? '')}
                  <Text size="xs" c="dimmed">
                    {session.ipAddress || 'Unknown address'}
                  </Text>
                  <Text size="xs" c="dimmed" hiddenFrom="xs">
                    <Time iso={session.createdAt} relative />
                  </Text>
                </Table.Td>
                <Table.Td visibleFrom="xs">
                  <Time iso={session.createdAt} relative />
                </Table.Td>
                <Table.Td ta="right">
                  {session.token === own ? (
                    <Text size="sm" c="dimmed">
                      This session
                    </Text>
                  ) : (
                    own !== undefined && (
                      <Button
                        size="xs"
                        variant="default"
                        loading={end.isPending && end.variables === session.token}
                        onClick={() => end.mutate(session.token)}
                      >
                        Sign out{' '}
                        <VisuallyHidden>{browserOf(session.userAgent ?? '')}</VisuallyHidden>
                      </Button>
                    )
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </ScrollTable>
        )}
      </Loaded>
    </Card>
  );
}

function browserOf(userAgent: string): string {
  const names = ['Edg', 'Firefox', 'Chrome', 'Safari', 'curl'];
  const name = names.find((each) => userAgent.includes(`${each}/`)) ?? 'Unknown browser';
  const system = ['Windows', 'Android', 'iPhone', 'Mac OS', 'Linux'].find((each) =>
    userAgent.includes(each),
  );
  const shown = name === 'Edg' ? 'Edge' : name;
  return system === undefined ? shown : `${shown} on ${system === 'Mac OS' ? 'macOS' : system}`;
}
