/** The sorts of callers that share an account: its owner, signed in to the console, and its keys. */
import type { SignedInOwner } from '../console/console.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';

/** Who takes a part of an account's share. */
export type Sharer = Pick<KeyOwner, 'accountId' | 'keyId' | 'spend'>;

/** With a session, and not with a key. */
export function isSignedIn(caller: Sharer): caller is SignedInOwner {
  return 'sessionId' in caller;
}
