/** The dialog with a new key or secret, which is shown this once. Only its own button closes it, not even Back. */
import { Alert, Button, Group, Modal, Stack, type ModalProps } from '@mantine/core';
import type { ReactNode } from 'react';
import { useNoSteps } from '../no-steps.ts';
import { CopyText } from './values.tsx';

interface SecretModalProps extends Pick<ModalProps, 'title' | 'size'> {
  readonly what: 'key' | 'secret';
  /** Undefined while there is nothing to show. */
  readonly secret: string | undefined;
  readonly onClose: () => void;
  readonly children?: ReactNode;
}

export function SecretModal({ what, secret, onClose, children, ...look }: SecretModalProps) {
  useNoSteps(secret !== undefined, true);
  return (
    <Modal
      {...look}
      opened={secret !== undefined}
      onClose={onClose}
      withCloseButton={false}
      closeOnClickOutside={false}
      closeOnEscape={false}
    >
      {secret !== undefined && (
        <Stack gap="md">
          <Alert color="orange">Copy this {what} now. It will not be shown again.</Alert>
          <Group wrap="nowrap" gap="xs" align="flex-start">
            <pre className="snippet breaks" style={{ flex: 1, whiteSpace: 'pre-wrap' }}>
              {secret}
            </pre>
            <CopyText value={secret} label={`Copy ${what}`} />
          </Group>
          {children}
          <Group justify="flex-end">
            <Button onClick={onClose}>Done</Button>
          </Group>
        </Stack>
      )}
    </Modal>
  );
}
