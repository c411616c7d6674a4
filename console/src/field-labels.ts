/** Messages of the API begin with the name of the field in its requests. People know the label in the form. */

const LABELS: Readonly<Record<string, string>> = {
  developerDayLimit: '“Daily limit for each developer”',
  expiresAt: '“Works until”',
  limit: 'The limit',
  maxPerCall: '“Limit for one call”',
  returnUrl: '“Return URL”',
  threshold: 'The threshold',
  'window.limit': 'The limit in each period',
};

/** `param` is the field that the API names, if it names one. */
export function inWordsOfForm(message: string, param: unknown): string {
  // From the sign-in endpoints.
  const text = message.replace(/^\[body\.\w+\] /, '');
  const label = typeof param === 'string' ? LABELS[param] : undefined;
  if (label === undefined || !text.startsWith(`${String(param)} `)) return text;
  return label + text.slice(String(param).length).replace(', in ISO 8601', '');
}
