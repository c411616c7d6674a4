/** The dialog over a page whose session has ended. The page keeps what was typed and continues after it. */
import { Anchor, Modal, Text } from '@mantine/core';
import { useSyncExternalStore } from 'react';
import { readSession } from '../api.ts';
import { endedAccount, leaveToSignIn, nowSignedIn, watchEnded } from '../session.ts';
import { SignInForm } from './sign-in-form.tsx';

/** Above the forms and menus of the page. */
const Z_INDEX = 1_000;

const stay = () => {};

export function SignInAgain() {
  const account = useSyncExternalStore(watchEnded, endedAccount);
  return (
    <Modal
      opened={account !== undefined}
      onClose={stay}
      withCloseButton={false}
      closeOnClickOutside={false}
      closeOnEscape={false}
      zIndex={Z_INDEX}
      // The page is not for other people who come to the machine. A blur would show large figures, and every frame of a
      // spinner under it would draw the whole page again.
      overlayProps={{ color: 'var(--console-ground)', backgroundOpacity: 1 }}
      title="Your session has ended"
    >
      <Text>Sign in to continue. This page keeps what you typed.</Text>
      {account && (
        <SignInForm
          email={account.email}
          onSignedIn={async () => {
            await nowSignedIn(await readSession());
          }}
        >
          <Anchor component="button" type="button" size="sm" onClick={leaveToSignIn}>
            Leave this page
          </Anchor>
        </SignInForm>
      )}
    </Modal>
  );
}
