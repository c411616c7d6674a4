-- What a month has taken from the saved card is what was credited in it and what is still pending, because a top-up of
-- the last minutes of a month may be paid in the next one. Admissions add that up by this index.
-- Locks: farebox.top_ups, share, while the index is built: top-ups wait, charges do not. Seconds for a million of them.
create index top_ups_taken on farebox.top_ups (consumer_id, coalesce(completed_at, 'infinity'))
  where method = 'direct' and status not in ('failed', 'expired');
