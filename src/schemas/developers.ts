/** Schemas of a developer's settings. */
import { Type, type Static } from 'typebox';
import { Closed, Id, PlainText } from './shapes.ts';

const ReturnUrl = Type.Union([PlainText(2_000, 'https://example.com/chat'), Type.Null()], {
  description:
    'The page to which people return after they top up through the `topUpUrl` of a refusal. Null: none.',
  examples: ['https://example.com/chat'],
});

/** Omitted members are not changed. */
export const DeveloperChanges = Type.Object({ returnUrl: Type.Optional(ReturnUrl) });
export type DeveloperChanges = Static<typeof DeveloperChanges>;

export const DeveloperReply = Closed({
  developerId: Id('developer', 'Your developer id.'),
  returnUrl: ReturnUrl,
});
export type DeveloperReply = Static<typeof DeveloperReply>;
