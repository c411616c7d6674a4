/** Messages of the API begin with the name of the field in its requests. People know the label in the form. */
import { ApiFailure } from './api.ts';

const LABELS: Readonly<Record<string, string>> = {
  developerDayLimit: '“Daily limit for each developer”',
  expiresAt: '“Works until”',
  limit: 'The limit',
  maxPerCall: '“Limit for one call”',
  returnUrl: '“Return URL”',
  threshold: 'The threshold',
  'window.limit': 'The limit in each period',
};

/** What the failure of a form says, in the words of the form. */
export function inWordsOfForm(error: Error): string {
  const { message } = error;
  const param = error instanceof ApiFailure ? (error.param ?? '') : '';
  const label = LABELS[param];
  if (label === undefined || !message.startsWith(`${param} `)) return message;
  return label + message.slice(param.length).replace(', in ISO 8601', '');
}
