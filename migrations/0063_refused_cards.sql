-- A bank may say that it will never accept a card again: it was lost, or its owner took the permission back. Card networks
-- charge for further attempts and block merchants that continue, so the card is not charged again.
-- Locks: ACCESS EXCLUSIVE on top_ups, for the catalogue alone. The previous release runs beside it.
alter table farebox.top_ups add column refused_card_id text;
comment on column farebox.top_ups.refused_card_id is
  'The saved card (pm_...) that its bank declined permanently when this top-up was to be paid. It is never charged again.';
