-- Each automatic top-up read all earlier top-ups of its account: for what the month took, for the last declines, for the cards that a
-- bank declined permanently, and for the time of the last checkout.
-- Locks: SHARE on top_ups, for as long as it takes to read them three times: top-ups wait. No charge reads top_ups. The previous
-- release may run beside it.

create index top_ups_direct on farebox.top_ups (consumer_id, created_at) where method = 'direct';
create index top_ups_refused_cards on farebox.top_ups (consumer_id, refused_card_id) where refused_card_id is not null;
create index top_ups_checkouts on farebox.top_ups (consumer_id, completed_at) where method = 'checkout' and not by_link;
