/**
 * The mails that tell the owner of an account about a change to how it is signed in to, and to who gets its
 * events. None contains the name of a passkey or the address of an endpoint, because an intruder may have
 * chosen it.
 */
import type { OwedMailKind } from '../store/console/owed-mails.ts';

interface MailText {
  readonly subject: string;
  /** The page of the console to which the mail leads; Security if not set. */
  readonly page?: string;
  /** `url` leads to that page; `passkeys` is how many the account has. */
  readonly bodyOf: (url: string, passkeys: number) => string;
}

export const SECURITY_MAIL_TEXTS: Readonly<Record<OwedMailKind, MailText>> = {
  passkey_added: {
    subject: 'A passkey was added to your Farebox account',
    bodyOf: (url) =>
      'A passkey was added to your Farebox account. It can be used to sign in without a password or a code. You can see all passkeys ' +
      `under Security:\n\n${url}\n\n` +
      'If you did not add it, somebody else has used your account. Remove the passkey, then set a new password, which ends ' +
      'all sessions.\n',
  },
  passkey_removed: {
    subject: 'A passkey was removed from your Farebox account',
    bodyOf: (url) =>
      'A passkey was removed from your Farebox account. It can no longer be used to sign in. You can see all passkeys ' +
      `under Security:\n\n${url}\n\n` +
      'If you did not remove it, somebody else has used your account. Set a new password, which ends all sessions, and ' +
      'remove the passkeys that are not yours.\n',
  },
  // Passkeys are kept, as they are where a password is only forgotten. An intruder may have added one.
  password_set: {
    subject: 'Your Farebox password was set',
    bodyOf: (url, passkeys) =>
      'The password of your Farebox account was set, and all sessions were ended.\n\n' +
      `${remaining(passkeys)}\n\n${url}\n\n` +
      'If you did not set the password, somebody else can read your email. Secure your mailbox, then set a new password and ' +
      'remove the passkeys that are not yours.\n',
  },
  // An intruder may lock the owner out.
  second_factor_on: {
    subject: 'Two-factor authentication was turned on for your Farebox account',
    bodyOf: (url) =>
      'Two-factor authentication was turned on for your Farebox account, and all other sessions were ended. Signing in with ' +
      'the password now requires a code too. You can turn it off again under Security:\n\n' +
      `${url}\n\n` +
      'If you did not turn it on, somebody else knows your password and has used your account. Set a new password, and ask ' +
      'an operator of this service to turn off two-factor authentication for your account.\n',
  },
  second_factor_off: {
    subject: 'Two-factor authentication was turned off for your Farebox account',
    bodyOf: (url) =>
      'Two-factor authentication was turned off for your Farebox account. You now sign in with the password alone. You can turn it ' +
      `on again under Security:\n\n${url}\n\n` +
      'If you neither turned it off nor asked an operator to, somebody else knows your password and has used your account. Set a new password, which ' +
      'ends all sessions, and remove the passkeys that are not yours.\n',
  },
  // It gets events even after the key that made it is revoked.
  webhook_endpoint: {
    subject: 'Events of your Farebox account are sent to a new address',
    page: 'developer/webhooks',
    bodyOf: (url) =>
      'A webhook endpoint was added to your Farebox account, or the address of one was changed. It gets events of your account, such as ' +
      `top-ups and refunds. You can see all endpoints under Webhooks:\n\n${url}\n\n` +
      'If neither you nor a program of yours did this, somebody else has one of your secret keys. Revoke that key, then delete the ' +
      'endpoint: it gets events even after the key is revoked.\n',
  },
};

function remaining(passkeys: number): string {
  if (passkeys === 0)
    return 'The account has no passkeys. You can review its sessions and sign-in methods under Security:';
  const which =
    passkeys === 1
      ? '1 passkey, which still signs in without a password'
      : `${passkeys} passkeys, which still sign in without a password`;
  return `The account has ${which}. Remove those that are not yours under Security:`;
}
