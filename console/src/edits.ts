/** The fields of a form that stays open: those that the user has not edited follow what is saved. */
import { useState } from 'react';

export interface Edits<Fields> {
  /** What the form shows. */
  readonly draft: Fields;
  readonly edit: (fields: Partial<Fields>) => void;
  /** After this was saved. What the user has typed since stays. */
  readonly forget: (sent: Fields) => void;
}

export function useEdits<Fields extends object>(saved: Fields): Edits<Fields> {
  const [edits, setEdits] = useState<Partial<Fields>>({});
  return {
    draft: { ...saved, ...edits },
    edit: (fields) => setEdits((before) => ({ ...before, ...fields })),
    forget: (sent) =>
      setEdits(
        (before) =>
          Object.fromEntries(
            Object.entries(before).filter(([name, value]) => value !== sent[name as keyof Fields]),
          ) as Partial<Fields>,
      ),
  };
}
