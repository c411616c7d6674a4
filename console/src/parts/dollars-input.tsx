/** A field for dollars, as text: the API checks that they are exact. */
import { TextInput, type TextInputProps } from '@mantine/core';

export function DollarsInput({
  onValue,
  ...props
}: TextInputProps & { readonly onValue: (value: string) => void }) {
  return (
    <TextInput
      inputMode="decimal"
      maxLength={20}
      leftSection="$"
      onChange={(event) => onValue(event.currentTarget.value)}
      {...props}
    />
  );
}
