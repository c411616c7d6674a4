-- Under which ceilings a top-up was taken from the saved card: the owner may change them afterwards, and doctor
-- is to prove that no month took more than it was allowed.
alter table farebox.top_ups
  add column consent_ceiling_micros bigint,
  add column automatic_ceiling_micros bigint;
comment on column farebox.top_ups.consent_ceiling_micros is
  'Of direct ones: what they might take in the month, when this one was let in.';
comment on column farebox.top_ups.automatic_ceiling_micros is
  'Of automatic ones: what these might take in the month, within the other.';
