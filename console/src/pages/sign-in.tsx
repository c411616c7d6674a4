/** The pages to sign in, to sign up and to set a password. */
import {
  Alert,
  Anchor,
  Button,
  Center,
  Group,
  Paper,
  PasswordInput,
  Stack,
  Text,
  Title,
} from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useState, type ReactNode } from 'react';
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from '../../../src/domain/password.ts';
import { ApiFailure, auth } from '../api.ts';
import { Brand } from '../parts/brand.tsx';
import { EmailInput, SignInForm, useForm } from '../parts/sign-in-form.tsx';
import { forgetAccount } from '../session.ts';

interface FrameProps {
  readonly title: string;
  readonly intro?: ReactNode;
  readonly children: ReactNode;
}

function Frame({ title, intro, children }: FrameProps) {
  useEffect(() => {
    document.title = `${title} · Farebox`;
  }, [title]);
  return (
    <Center mih="100vh" p="md" component="main">
      <Stack w="100%" maw={400} gap="lg">
        <Center>
          <Brand />
        </Center>
        <Paper p="xl">
          <Title order={1} mb={4}>
            {title}
          </Title>
          {intro !== undefined && (
            <Text c="dimmed" mb="md">
              {intro}
            </Text>
          )}
          {children}
        </Paper>
      </Stack>
    </Center>
  );
}

const REASONS: Readonly<Record<string, string>> = {
  ended: 'Your session has ended. Sign in to continue where you left off.',
  'two-factor':
    'This account uses two-factor authentication. Sign in with your password and a code, or with a passkey.',
  link: 'This sign-in link has expired or was already used.',
};

export function SignInPage() {
  const { next, reason } = useSearch({ from: '/sign-in' });
  const navigate = useNavigate();
  const queries = useQueryClient();
  const finish = async () => {
    forgetAccount();
    queries.clear();
    // Only a path within the console: a full URL could lead to another site.
    const isOwn = next !== undefined && /^\/(?![/\\])/.test(next);
    await navigate({ href: isOwn ? next : '/balance' });
  };
  return (
    <Frame title="Sign in">
      <SignInForm
        note={
          reason !== undefined &&
          REASONS[reason] !== undefined && (
            <Alert color="blue" p="sm">
              {REASONS[reason]}
            </Alert>
          )
        }
        onSignedIn={finish}
      >
        <Group justify="space-between" gap="xs">
          <Anchor component={Link} to="/sign-up" size="sm">
            Create account
          </Anchor>
          <Anchor component={Link} to="/sign-up" size="sm">
            Forgot password?
          </Anchor>
        </Group>
      </SignInForm>
    </Frame>
  );
}

export function SignUpPage() {
  const [email, setEmail] = useState('');
  const [isSent, setSent] = useState(false);
  const form = useForm(async () => {
    const body = { email: email.trim() };
    // Where sign-up is closed, owners of accounts still choose a new password.
    await auth('/sign-up', body).catch((error: unknown) => {
      if (!(error instanceof ApiFailure) || error.status !== 403) throw error;
      return auth('/request-password-reset', body);
    });
    setSent(true);
  });
  if (isSent) {
    return (
      <Frame title="Check your email">
        <Text role="status" className="breaks">
          If <b>{email}</b> can sign up or already has an account, we emailed a link to set the
          password. The link works for one hour.
        </Text>
        <Button variant="default" mt="md" fullWidth onClick={() => setSent(false)}>
          Use another address
        </Button>
      </Frame>
    );
  }
  return (
    <Frame
      title="Set up your account"
      intro="Enter your email. We send you a link to choose a password, for a new account or in place of a forgotten password."
    >
      <form onSubmit={form.submit}>
        <Stack gap="md">
          <EmailInput value={email} onChange={setEmail} />
          {form.note}
          <Button type="submit" loading={form.isBusy}>
            Send link
          </Button>
          <Text size="sm" ta="center">
            <Anchor component={Link} to="/sign-in" inherit>
              Sign in instead
            </Anchor>
          </Text>
        </Stack>
      </form>
    </Frame>
  );
}

export function SetPasswordPage() {
  const { token } = useSearch({ from: '/set-password' });
  const navigate = useNavigate();
  const [password, setPassword] = useState('');
  const [isSet, setIsSet] = useState(false);
  const form = useForm(async () => {
    await auth('/reset-password', { newPassword: password, token }).catch((error: unknown) => {
      if (!(error instanceof ApiFailure) || error.code !== 'INVALID_TOKEN') throw error;
      throw new Error(
        'This link has expired or was already used. If you have just saved a password, sign in with it.',
      );
    });
    setIsSet(true);
  });
  if (isSet) {
    return (
      <Frame title="Password set">
        <Text role="status" mb="md">
          Your password was saved, and all sessions were ended. You can sign in with it now.
          Passkeys still sign in: remove those that are not yours under Security.
        </Text>
        <Button fullWidth onClick={() => void navigate({ to: '/sign-in' })}>
          Sign in
        </Button>
      </Frame>
    );
  }
  return (
    <Frame title="Set your password">
      <form onSubmit={form.submit}>
        <Stack gap="md" mt="md">
          <PasswordInput
            label="New password"
            description={`${PASSWORD_LENGTH_MIN} to ${PASSWORD_LENGTH_MAX} characters`}
            autoComplete="new-password"
            required
            withAsterisk={false}
            minLength={PASSWORD_LENGTH_MIN}
            value={password}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          {form.note}
          <Button type="submit" loading={form.isBusy}>
            Save password
          </Button>
          <Group justify="space-between" gap="xs">
            <Anchor component={Link} to="/sign-in" size="sm">
              Sign in instead
            </Anchor>
            <Anchor component={Link} to="/sign-up" size="sm">
              Send another link
            </Anchor>
          </Group>
        </Stack>
      </form>
    </Frame>
  );
}
