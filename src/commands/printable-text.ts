/** Free text of operators, under the same rule as in requests: others read it in statements and the audit log. */
import { InvalidArgumentError } from 'commander';
import { printable } from '../schemas/shapes.ts';

/** Parses an option: 1 to `lengthMax` characters, without line breaks and not all blank. */
export function printableText(lengthMax: number): (text: string) => string {
  const { pattern, mustBe } = printable(lengthMax);
  const form = new RegExp(pattern, 'u');
  return (text) => {
    if (form.test(text)) return text;
    throw new InvalidArgumentError(`It must be ${mustBe}.`);
  };
}
