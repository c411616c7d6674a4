/** Schemas of a developer's settings. */
import { Type, type Static } from 'typebox';
import { Closed, Id, PlainText } from './shapes.ts';

/** The length of the URL as it is stored, with everything beyond ASCII encoded. */
export const RETURN_URL_MAX = 2_000;

const ReturnUrl = Type.Union([PlainText(RETURN_URL_MAX, 'https://example.com/chat'), Type.Null()], {
  description:
    'The page to which people return after they top up through the `topUpUrl` of a refusal. Null: none.',
  examples: ['https://example.com/chat'],
});

/** Omitted members are not changed. */
export const DeveloperChanges = Closed({ returnUrl: Type.Optional(ReturnUrl) });
export type DeveloperChanges = Static<typeof DeveloperChanges>;

export const DeveloperReply = Closed({
  developerId: Id('developer', 'Your developer id.'),
  returnUrl: ReturnUrl,
});
export type DeveloperReply = Static<typeof DeveloperReply>;
