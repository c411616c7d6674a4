/** Passkeys in this browser, by its own WebAuthn functions. Failures are errors with a message for the user. */
import { ApiFailure, auth, prove } from './api.ts';

/** What the browser says, in the words of a user. */
const FAILURES: Readonly<Record<string, string>> = {
  NotAllowedError: 'No passkey was used: the request was canceled or took too long.',
  InvalidStateError: 'This device already has a passkey for your account.',
  SecurityError: `Passkeys do not work at ${location.hostname}. On this machine, open the console at localhost.`,
};

/** Whether this browser has passkeys, and the functions that this page needs. */
export function hasPasskeys(): boolean {
  return (
    typeof PublicKeyCredential !== 'undefined' &&
    typeof PublicKeyCredential.parseCreationOptionsFromJSON === 'function' &&
    typeof PublicKeyCredential.parseRequestOptionsFromJSON === 'function'
  );
}

export async function addPasskey(name: string): Promise<void> {
  const options = await auth<PublicKeyCredentialCreationOptionsJSON>(
    '/passkey/generate-register-options',
  ).catch(explainOldSession);
  const response = await ask(() =>
    navigator.credentials.create({
      publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options),
    }),
  );
  await auth('/passkey/verify-registration', { response, name });
}

export async function signInWithPasskey(): Promise<void> {
  const options = await prove<PublicKeyCredentialRequestOptionsJSON>(
    '/passkey/generate-authenticate-options',
  );
  const response = await ask(() =>
    navigator.credentials.get({
      publicKey: PublicKeyCredential.parseRequestOptionsFromJSON({
        ...options,
        // The server accepts nothing less.
        userVerification: 'required',
      }),
    }),
  );
  await prove('/passkey/verify-authentication', { response }).catch((error: unknown) => {
    if (!(error instanceof ApiFailure) || error.code !== 'PASSKEY_NOT_FOUND') throw error;
    throw new Error(
      'This passkey is not known here; it may have been removed. Sign in with your email and password, or with another passkey.',
    );
  });
}

async function ask(request: () => Promise<Credential | null>): Promise<unknown> {
  try {
    return ((await request()) as PublicKeyCredential | null)?.toJSON();
  } catch (error) {
    const { name, message } = error as DOMException;
    throw new Error(FAILURES[name] ?? message, { cause: error });
  }
}

function explainOldSession(error: unknown): never {
  if (error instanceof ApiFailure && error.code === 'SESSION_NOT_FRESH') {
    throw new Error(
      'You signed in more than ten minutes ago. Sign in again, then add the passkey.',
    );
  }
  throw error;
}
