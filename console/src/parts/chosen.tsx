/**
 * Details of the row that was clicked in the list above. The list may be long, so the click scrolls to the
 * details and focuses them.
 */
import { Stack } from '@mantine/core';
import { useEffect, useRef, type ReactNode } from 'react';

/** Each click is a new object, so that a second click on the same row has an effect. */
export interface Click {
  readonly id: string;
}

interface ChosenProps {
  /** Undefined until the content is there, and when it was not a click that chose it. */
  readonly click: Click | undefined;
  readonly children: ReactNode;
}

export function Chosen({ click, children }: ChosenProps) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!click) return;
    place.current?.scrollIntoView();
    place.current?.focus({ preventScroll: true });
  }, [click]);
  return (
    <Stack ref={place} tabIndex={-1} gap="lg" className="chosen">
      {children}
    </Stack>
  );
}
