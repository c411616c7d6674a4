/** Signing in by password and code or by passkey: on a page of its own, or over the page whose session ended. */
import { Alert, Button, PasswordInput, Stack, Text, TextInput } from '@mantine/core';
import { IconFingerprint } from '@tabler/icons-react';
import { useState, type FormEvent, type ReactNode } from 'react';
import { ApiFailure, prove } from '../api.ts';
import { hasPasskeys, signInWithPasskey } from '../passkeys.ts';

/** Submits a form. After a failure, shows the message and keeps the input. */
export function useForm(send: () => Promise<void>) {
  const [problem, setProblem] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    await send().catch((error: Error) => setProblem(error.message));
    setBusy(false);
  };
  const note = problem !== undefined && (
    <Alert color="red" role="alert" p="sm">
      {problem}
    </Alert>
  );
  const forget = () => setProblem(undefined);
  return { isBusy, note, forget, submit: (event: FormEvent) => void submit(event) };
}

interface EmailProps {
  readonly value: string;
  readonly onChange: (email: string) => void;
}

export function EmailInput({ value, onChange }: EmailProps) {
  return (
    <TextInput
      label="Email"
      type="email"
      autoComplete="username"
      required
      withAsterisk={false}
      maxLength={254}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

interface SignInProps {
  readonly email?: string;
  /** Above the fields. */
  readonly note?: ReactNode;
  /** Below the buttons. */
  readonly children: ReactNode;
  readonly onSignedIn: () => Promise<void>;
}

const OVER = 'Too many wrong codes, or ten minutes have passed. Type your password again.';
/** No code is accepted any more after this password, and why. */
const OVERS: ReadonlyMap<string, string> = new Map([
  ['TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE', OVER],
  ['INVALID_TWO_FACTOR_COOKIE', OVER],
  [
    'CODE_ALREADY_USED',
    'This code was already used. Type your password again, then the next code from your app.',
  ],
]);

export function SignInForm({ email: known = '', note, children, onSignedIn }: SignInProps) {
  const [email, setEmail] = useState(known);
  const [password, setPassword] = useState('');
  const [code, setCode] = useState<string>();
  const form = useForm(async () => {
    if (code !== undefined) {
      const typed = code.replaceAll(' ', '');
      const isBackup = typed.includes('-');
      await prove(isBackup ? '/two-factor/verify-backup-code' : '/two-factor/verify-totp', {
        code: typed,
      }).catch((error: unknown) => {
        const why = error instanceof ApiFailure ? OVERS.get(error.code) : undefined;
        if (why === undefined) throw error;
        setCode(undefined);
        setPassword('');
        throw new Error(why);
      });
      return onSignedIn();
    }
    const answer = await prove<{ twoFactorRedirect?: boolean }>('/sign-in/email', {
      email,
      password,
    });
    if (answer.twoFactorRedirect === true) setCode('');
    else await onSignedIn();
  });
  const passkey = useForm(async () => {
    await signInWithPasskey();
    await onSignedIn();
  });
  return (
    <form
      onSubmit={(event) => {
        // Another way is tried now.
        passkey.forget();
        form.submit(event);
      }}
    >
      <Stack gap="md" mt="md">
        {note}
        {code === undefined ? (
          <>
            <EmailInput value={email} onChange={setEmail} />
            <PasswordInput
              label="Password"
              autoComplete="current-password"
              required
              withAsterisk={false}
              data-autofocus={known !== '' || undefined}
              value={password}
              onChange={(event) => setPassword(event.currentTarget.value)}
            />
          </>
        ) : (
          <>
            <TextInput
              label="Code from your authenticator app"
              description="Or one of your backup codes, with its hyphen"
              autoComplete="one-time-code"
              autoFocus
              required
              withAsterisk={false}
              value={code}
              onChange={(event) => setCode(event.currentTarget.value)}
            />
            <Text size="sm" c="dimmed">
              If you have lost the app and every backup code, ask the operator of this Farebox to
              turn two-factor authentication off.
            </Text>
          </>
        )}
        {form.note}
        <Button type="submit" loading={form.isBusy}>
          Sign in
        </Button>
        {hasPasskeys() && (
          <>
            {passkey.note}
            <Button
              variant="default"
              leftSection={<IconFingerprint size={18} />}
              loading={passkey.isBusy}
              onClick={(event) => {
                form.forget();
                passkey.submit(event);
              }}
            >
              Sign in with a passkey
            </Button>
          </>
        )}
        {children}
      </Stack>
    </form>
  );
}
