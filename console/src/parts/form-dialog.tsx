/**
 * A dialog that sends a request. While the request runs, nothing closes the dialog: so it shows a failure, and a
 * success closes no other dialog. A click beside it, or Escape, does not throw away what was typed.
 */
import { Button, Modal, type Drawer } from '@mantine/core';
import {
  useMutation,
  type UseMutationOptions,
  type UseMutationResult,
} from '@tanstack/react-query';
import {
  createContext,
  useContext,
  useEffect,
  useMemo,
  useState,
  type Dispatch,
  type ReactNode,
  type SetStateAction,
} from 'react';
import { flushSync } from 'react-dom';
import { useNoSteps } from '../no-steps.ts';

interface Dialog {
  readonly isRunning: boolean;
  readonly setRunning: Dispatch<SetStateAction<boolean>>;
  readonly setTyped: Dispatch<SetStateAction<boolean>>;
  readonly onClose: () => void;
}

const DialogContext = createContext<Dialog | undefined>(undefined);

function useDialog(): Dialog {
  const dialog = useContext(DialogContext);
  if (!dialog) throw new Error('outside a FormDialog');
  return dialog;
}

interface FormDialogProps {
  readonly opened: boolean;
  readonly onClose: () => void;
  readonly title: ReactNode;
  /** Drawer for a dialog at the side of the page. Few pages have one, so only they load it. */
  readonly frame?: typeof Modal | typeof Drawer;
  readonly children: ReactNode;
}

export function FormDialog({
  opened,
  onClose,
  title,
  frame: Frame = Modal,
  children,
}: FormDialogProps) {
  const [isRunning, setRunning] = useState(false);
  const [isTyped, setTyped] = useState(false);
  useEffect(() => setTyped(false), [opened]);
  useNoSteps(isRunning);
  const dialog = useMemo(
    () => ({ isRunning, setRunning, setTyped, onClose }),
    [isRunning, onClose],
  );
  const isLoose = !isRunning && !isTyped;
  return (
    <Frame
      opened={opened}
      onClose={() => {
        if (!isRunning) onClose();
      }}
      title={title}
      closeOnEscape={isLoose}
      closeOnClickOutside={isLoose}
      // Not disabled while the request runs: the keyboard focus needs a place in the dialog.
      closeButtonProps={{ 'aria-label': 'Close', 'aria-disabled': isRunning }}
    >
      <DialogContext value={dialog}>
        <div onInput={() => setTyped(true)}>{children}</div>
      </DialogContext>
    </Frame>
  );
}

/** The request of the form in the dialog. A failure is shown at once; lists are read again meanwhile. */
export function useFormRequest<Data, Variables = void>(
  options: UseMutationOptions<Data, Error, Variables>,
): UseMutationResult<Data, Error, Variables> {
  const { setRunning, setTyped } = useDialog();
  const request = useMutation({
    ...options,
    // Before the next key or step back, which would close the dialog.
    onMutate: () => flushSync(() => setRunning(true)),
    onError: (...all) => void options.onError?.(...all),
    onSettled: (data, error, ...rest) => {
      const lists = options.onSettled?.(data, error, ...rest);
      return error ? undefined : lists;
    },
  });
  const { isPending, isSuccess, submittedAt } = request;
  useEffect(() => {
    setRunning(isPending);
    return () => setRunning(false);
    // A request that ends before it was drawn as pending has changed only when it was submitted.
  }, [isPending, submittedAt, setRunning]);
  useEffect(() => {
    if (isSuccess) setTyped(false);
  }, [isSuccess, setTyped]);
  return request;
}

export function CancelButton() {
  const { isRunning, onClose } = useDialog();
  return (
    <Button variant="default" disabled={isRunning} onClick={onClose}>
      Cancel
    </Button>
  );
}
