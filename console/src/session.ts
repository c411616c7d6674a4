/**
 * The account whose data this page shows, and what happens when its session ends: the requests wait until the
 * same account has signed in again, here or in another tab, and are then sent unchanged. So nothing that was
 * typed is lost. If another account has signed in, the page is left instead, with everything that it has in
 * memory.
 */
import type { Session } from './answers.ts';

type Account = Pick<Session, 'consumerId' | 'email'>;

let account: Account | undefined;
let signingIn: PromiseWithResolvers<void> | undefined;
let isLeft = false;
let signIns = 0;
const watchers = new Set<() => void>();
const tabs = new BroadcastChannel('farebox-session');

/** The consumer's id of the account that is signed in on this page, or was until its session ended. */
export function accountOfPage(): string | undefined {
  return account?.consumerId;
}

/** How often somebody was found to be signed in, here or in another tab. */
export function signInsSoFar(): number {
  return signIns;
}

/** Whether the page goes elsewhere as a whole. */
export function isLeaving(): boolean {
  return isLeft;
}

/** Resolves when requests may be sent: not while the dialog is open, nor as another account. */
export async function maySend(): Promise<void> {
  if (isLeft) return new Promise(() => {});
  await signingIn?.promise;
}

/** Resolves once the account has signed in again; false at once when nobody was signed in on this page. */
export async function signedInAgain(): Promise<boolean> {
  if (account === undefined) return false;
  if (signingIn === undefined) {
    signingIn = Promise.withResolvers();
    notify();
  }
  await signingIn.promise;
  return true;
}

/** Every session that the API reports goes through here. Never resolves when the page is left. */
export async function nowSignedIn(session: Session): Promise<Session> {
  const { consumerId } = session;
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has only this one
  tabs.postMessage(consumerId);
  account ??= session;
  if (continuesWith(consumerId)) return session;
  return new Promise(() => {});
}

/** After signing out, and before anybody signs in on a page of its own. */
export function forgetAccount(): void {
  account = undefined;
  signingIn = undefined;
  notify();
}

/** To the sign-in page, which leads back here; what was typed is lost. */
export function leaveToSignIn(): void {
  isLeft = true;
  const { pathname, search } = window.location;
  const next = pathname.replace('/console', '') + search;
  window.location.assign(`/console/sign-in?${new URLSearchParams({ next, reason: 'ended' })}`);
}

/** The account that has to sign in again, if its session has ended. */
export function endedAccount(): Account | undefined {
  return signingIn && account;
}

export function watchEnded(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

tabs.addEventListener('message', ({ data }) => {
  if (account !== undefined) continuesWith(String(data));
});

// Before any listener of a form: the key would close the form under the dialog.
window.addEventListener(
  'keydown',
  (event) => {
    if (event.key === 'Escape' && signingIn !== undefined) event.stopImmediatePropagation();
  },
  { capture: true },
);

function continuesWith(consumerId: string): boolean {
  if (consumerId !== account?.consumerId) {
    isLeft = true;
    window.location.assign('/console/balance');
    return false;
  }
  signIns += 1;
  signingIn?.resolve();
  signingIn = undefined;
  notify();
  return true;
}

function notify(): void {
  for (const watcher of watchers) watcher();
}
